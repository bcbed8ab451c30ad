"""``manage.py config_publish SLUG FILE``: sign and publish a new config version."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from web.core.errors import AppError
from web.runs.models import Run
from web.runs.services import run_config_publish


class Command(BaseCommand):
    help = "Publish a config: the fields of RunConfig, without those that the site fills in."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("file", type=Path, help="JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        run = Run.objects.select_related("organiser").filter(slug=options["slug"]).first()
        if run is None:
            raise CommandError(f"There is no run {options['slug']}.")
        try:
            draft = json.loads(options["file"].read_text())
            version = run_config_publish(run.organiser, run, draft)
        except (OSError, ValueError) as error:
            raise CommandError(f"{options['file']} cannot be read as JSON: {error}") from error
        except AppError as error:
            raise CommandError(f"Not published. {error.detail} {error.remedy}") from error
        self.stdout.write(f"{run.slug}: version {version.version}, lineage {version.lineage}.")
