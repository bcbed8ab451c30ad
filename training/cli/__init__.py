"""The command line ``beeyard``. torch and hivemind are imported only when training starts."""

from training.cli.app import main

__all__ = ["main"]
