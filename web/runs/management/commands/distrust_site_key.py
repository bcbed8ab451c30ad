from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from web.core.audit import audit_record
from web.core.keys import site_key_distrust
from web.runs.services import configs_resign_from


class Command(BaseCommand):
    help = "Stop publishing a leaked site key and sign everything again that carries its signature."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "kid",
            help="thumbprint, as /api/v1/keys/ shows it; -- before one that begins with a dash",
        )
        parser.add_argument(
            "--start-over",
            action="store_true",
            help="the key is in use: make one that nothing vouches for; every client pins anew",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        kid: str = options["kid"]
        try:
            key = site_key_distrust(kid, start_over=options["start_over"])
        except ValueError as error:
            raise CommandError(str(error)) from error
        audit_record(None, "site.key.distrusted", kid, {"signs_now": key.thumbprint()})
        number = configs_resign_from(kid, timezone.now())
        self.stdout.write(
            f"{kid} is not published any more; {number} config version(s) are signed again with "
            f"{key.thumbprint()}."
        )
