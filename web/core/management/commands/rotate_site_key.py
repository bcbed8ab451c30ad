from typing import Any

from django.core.management.base import BaseCommand
from django.db import transaction

from web.core.audit import audit_record
from web.core.keys import site_key_rotate


class Command(BaseCommand):
    help = "Make a new site key, vouched for by the current one, and sign with it from now on."

    def handle(self, *args: Any, **options: Any) -> None:
        with transaction.atomic():
            kid = site_key_rotate().thumbprint()
            audit_record(None, "site.key.rotated", kid)
        self.stdout.write(f"The site signs with {kid} now; older keys stay published.")
