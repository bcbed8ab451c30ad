"""``manage.py task_allow FILE [NAME …]``: let configs name tasks of installed packages."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from web.core.errors import AppError
from web.runs.catalogue import tasks_built_in
from web.runs.services import task_allow, task_entries


class Command(BaseCommand):
    help = "Allow tasks; FILE is what `beeyard tasks --json` printed (- reads it from the pipe)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file")
        parser.add_argument("names", nargs="*", help="only these; otherwise all in the file")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            name = options["file"]
            text = sys.stdin.read() if name == "-" else Path(name).read_text()
            entries = [entry for entry in task_entries(text) if self._wanted(entry, options)]
            if not entries:
                raise CommandError("There is no such task in the file, or it is built in.")
            for entry in entries:
                self.stdout.write(f"{task_allow(None, entry).name}: allowed.")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{options['file']} cannot be read: {error}") from error
        except AppError as error:
            raise CommandError(f"Not allowed. {error.detail}") from error

    def _wanted(self, entry: dict[str, Any], options: dict[str, Any]) -> bool:
        name = entry.get("name")
        return name not in tasks_built_in() and (not options["names"] or name in options["names"])
