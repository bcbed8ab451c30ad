"""``manage.py up``: the whole site in one terminal."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Start the site, its demo run and all their processes; Ctrl-C stops everything."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        # Taken by web.project.stack.first before the settings were read; named here for --help.
        parser.add_argument("--port", type=int)
        parser.add_argument("--bind")
        parser.add_argument("--data")
        parser.add_argument("--no-demo", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        from web.project.stack.terminal import terminal_open
        from web.project.stack.up import up  # loads models

        with terminal_open() as terminal:
            code = up(terminal)
        sys.exit(code)
