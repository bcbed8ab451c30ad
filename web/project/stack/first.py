"""What must happen before the settings are read: flags of ``up``, and whether they can be read."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from web.project.stack.preflight import PreflightError, folder_check, python_check

_DEFAULT_DATA = Path(__file__).resolve().parents[3] / "var"


def flags_parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the flags; wrong ones end the process with code 2 and a sentence."""
    parser = argparse.ArgumentParser(prog="make run", description="Start the site.")
    parser.add_argument("--port", type=int, help="port of the site (BEEYARD_PORT)")
    parser.add_argument("--bind", help="address to listen on (BEEYARD_BIND)")
    parser.add_argument("--data", help="data folder (BEEYARD_DATA)")
    parser.add_argument("--no-demo", action="store_true", help="no demo run (BEEYARD_DEMO=0)")
    return parser.parse_args(arguments)


def flags_take(arguments: Sequence[str]) -> None:
    """Put the flags into the environment, from which the settings are read."""
    flags = flags_parse(arguments)
    data = Path(flags.data or os.environ.get("BEEYARD_DATA") or _DEFAULT_DATA).expanduser()
    os.environ["BEEYARD_DATA"] = str(data.resolve())
    if flags.port is not None:
        os.environ["BEEYARD_PORT"] = str(flags.port)
    if flags.bind:
        os.environ["BEEYARD_BIND"] = flags.bind
    if flags.no_demo:
        os.environ["BEEYARD_DEMO"] = "0"
    try:
        python_check()
        folder_check(Path(os.environ["BEEYARD_DATA"]))
        _settings_read()
    except PreflightError as error:
        sys.exit(f"Cannot start: {error}")


def _settings_read() -> None:
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured

    try:
        settings.configured or settings.DATA_DIR  # noqa: B018 - reading loads them
    except ImproperlyConfigured as error:
        raise PreflightError(str(error)) from error
