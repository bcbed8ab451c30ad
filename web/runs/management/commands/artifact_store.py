"""``manage.py artifact_store FILE [--name NAME]``: keep a file that configs may then name."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from web.core.errors import AppError
from web.runs.services import artifact_store


class Command(BaseCommand):
    help = "Store a file, such as a tokenizer, under its content hash; drafts can then tick it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--name", help="what configs call it; its own name when absent")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            artifact = artifact_store(path, options["name"] or path.name)
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}") from error
        except AppError as error:
            raise CommandError(f"Not stored. {error.detail}") from error
        self.stdout.write(f"{artifact.name}: {artifact.size} bytes, sha256 {artifact.sha256}")
