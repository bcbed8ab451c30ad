"""Puts live states from the database into Redis again."""

from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from web.monitoring.services import live_state_rebuild
from web.runs.models import Run


class Command(BaseCommand):
    help = "Put the live states of all runs from the database into Redis again."

    def handle(self, *args: Any, **options: Any) -> None:
        runs = list(Run.objects.all())
        for run in runs:
            live_state_rebuild(run, timezone.now())
        self.stdout.write(f"The live states of {len(runs)} runs were made anew.")
