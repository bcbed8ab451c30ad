"""``manage.py node``: this machine starts managed workers for a site that runs elsewhere."""

import sys
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = (
        "Start and stop managed workers on this machine for a site that runs elsewhere; needs "
        "BEEYARD_NODE, REDIS_URL and DATABASE_URL. Ctrl-C stops everything."
    )
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        from web.project.stack.node import node_run  # loads models
        from web.project.stack.terminal import terminal_open

        with terminal_open() as terminal:
            code = node_run(terminal)
        sys.exit(code)
