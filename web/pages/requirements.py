"""An honest line about what a run asks of a machine, from its config. Pure."""

from collections.abc import Mapping
from typing import Any, Final

_LARGE_HIDDEN: Final = 768
"""Width of the model from which on a CPU takes minutes for what a GPU does in seconds."""


def needs_gpu(config: Mapping[str, Any]) -> bool:
    """Whether a machine without a GPU would hardly help."""
    params = config.get("task", {}).get("params", {})
    width = params.get("hidden_size", 0)
    return isinstance(width, int | float) and width >= _LARGE_HIDDEN


def requirement_line(config: Mapping[str, Any]) -> str:
    """Return the sentence beside the join button."""
    machine = "A GPU with 8 GB is advised" if needs_gpu(config) else "A CPU is enough"
    return f"{machine} · Linux or macOS · Python 3.11 to 3.13 · about 5 minutes"
