#!/usr/bin/env python3
"""Entry to the site's commands: ``python manage.py help`` lists them."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "web.project.settings")
    if sys.argv[1:2] == ["up"]:
        from web.project.stack.first import flags_take

        flags_take(sys.argv[2:])
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
