"""``manage.py seed_demo``: make what is missing of the demo run."""

from typing import Any

from django.core.management.base import BaseCommand

from web.workers.demo import demo_seed


class Command(BaseCommand):
    help = "Make the demo run, its organiser and its managed workers, as far as they are missing."

    def handle(self, *args: Any, **options: Any) -> None:
        run = demo_seed(self.stdout.write)
        self.stdout.write(f"The demo run is {run.slug}.")
