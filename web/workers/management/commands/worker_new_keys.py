from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from web.workers.models import ManagedWorker
from web.workers.rekey import managed_worker_keys_replace


class Command(BaseCommand):
    help = "Refuse the keys of a managed worker (its coordinator's, say) and have it make new ones."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="of the run")
        parser.add_argument("name", help="of the worker, such as coordinator")

    def handle(self, *args: Any, **options: Any) -> None:
        workers = ManagedWorker.objects.select_related("run")
        worker = workers.filter(run__slug=options["slug"], name=options["name"]).first()
        if worker is None:
            raise CommandError(f"Run {options['slug']} has no worker {options['name']}.")
        device = managed_worker_keys_replace(None, worker)
        known = f"device {device.public_id}" if device else "no device yet"
        self.stdout.write(f"{worker.name} ({known}) starts again with new keys.")
