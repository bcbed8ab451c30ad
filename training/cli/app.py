"""From the command line to a command, and from what happens to an exit code."""

import importlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import cast

from training.cli.arguments import Arguments, parser_build
from training.cli.logs import log_file_open
from training.cli.output import Output
from training.client.errors import ClientError, ExitCode
from training.client.store import home_open

Command = Callable[[Arguments, Output], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``beeyard`` and return its exit code; nothing ever escapes as a traceback."""
    args = parser_build().parse_args(argv, namespace=Arguments())
    out = Output(as_json=args.json)
    try:
        return _command(args.command)(args, out)
    except ClientError as error:
        out.error(error)
        return int(error.exit_code)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; the interpreter must not try to flush it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.FINE)
    except Exception as error:  # noqa: BLE001 - people get a sentence, the file gets the rest
        out.error(_unforeseen(error, args))
        return int(ExitCode.FAILED)


def _command(dotted: str) -> Command:
    """Return ``module:function`` of this package; modules load only when they are asked for."""
    module, name = dotted.split(":")
    return cast(Command, getattr(importlib.import_module(f"training.cli.{module}"), name))


def _unforeseen(error: Exception, args: Arguments) -> ClientError:
    what = f"{type(error).__name__}: {error}".strip().splitlines()[0][:200]
    try:
        path = log_file_open(home_open(args.home).logs, "beeyard")
        handler = logging.FileHandler(path)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger = logging.getLogger("beeyard.crash")
        logger.propagate = False
        logger.addHandler(handler)
        logger.error("beeyard %s failed", args.command, exc_info=error)
        logger.removeHandler(handler)
        handler.close()
        remedy = f"Please report it with the end of {path}."
    except (ClientError, OSError):
        remedy = "Please report it; the details could not be written to the beeyard folder."
    return ClientError(
        "unforeseen", f"something broke here ({what})", remedy, exit_code=ExitCode.FAILED
    )
