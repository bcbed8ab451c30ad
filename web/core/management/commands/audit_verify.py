"""``manage.py audit_verify``: whether the audit log is as it was written."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from web.core.auditing import audit_check


class Command(BaseCommand):
    help = "Walk along the audit log's chain; name the first entry that does not hold."

    def handle(self, *args: Any, **options: Any) -> None:
        check = audit_check(timezone.now())
        if check.broken_seq is not None:
            raise CommandError(
                f"The audit log was tampered with: {check.text}. Compare with a backup or an "
                "export from before."
            )
        head = check.head or "none"
        self.stdout.write(f"{check.num_entries} entries hold. The last one is {head}.")
