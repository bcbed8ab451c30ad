"""Makes the totals anew from the ledger."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from web.contributions.services import totals_rebuild
from web.runs.models import Run


class Command(BaseCommand):
    help = "Make contribution totals anew from the ledger (of all runs, or of one)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--run", help="slug of one run")

    def handle(self, *args: Any, **options: Any) -> None:
        run = None
        if options["run"]:
            run = Run.objects.filter(slug=options["run"]).first()
            if run is None:
                raise CommandError(f"There is no run '{options['run']}'.")
        self.stdout.write(f"{totals_rebuild(run)} totals were made anew.")
