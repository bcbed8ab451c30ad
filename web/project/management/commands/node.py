"""``manage.py node``: this machine starts managed workers for a site that runs elsewhere."""

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = (
        "Start and stop managed workers on this machine for a site that runs elsewhere; needs "
        "BEEYARD_NODE and REDIS_URL. Ctrl-C stops everything."
    )
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        from web.project.stack.node import database_find, node_run  # loads models
        from web.project.stack.preflight import PreflightError
        from web.project.stack.terminal import terminal_open

        try:
            if database_find():
                # Settings are read once, at the start: begin anew with what was found.
                os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - ours, as it was called
        except PreflightError as error:
            self.stderr.write(f"Cannot start: {error}")
            sys.exit(1)
        with terminal_open() as terminal:
            code = node_run(terminal)
        sys.exit(code)
