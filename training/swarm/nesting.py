"""A bound on how deep a value that another peer sent may be nested.

hivemind writes a tuple as a msgpack extension whose bytes are msgpack again, and reads it by
calling itself. Each level takes tens of kilobytes of C stack, so that under 2 kB from any peer
would end the reading process with a segmentation fault, which nothing in Python can catch. The
records of a swarm nest two or three levels.
"""

import threading
from collections.abc import Callable
from typing import Any

from hivemind.utils.serializer import MSGPackSerializer

MAX_DEPTH = 16
_level = threading.local()


def nesting_bound() -> None:
    """Let hivemind's reader refuse, with a ValueError, what is nested deeper than MAX_DEPTH.

    For the whole process and the children that it forks; a second call changes nothing.
    """
    original = MSGPackSerializer._decode_ext_types
    if not hasattr(original, "max_depth"):
        MSGPackSerializer._decode_ext_types = _bounded(original)


def _bounded(decode: Callable[[int, bytes], Any]) -> Callable[[int, bytes], Any]:
    def bounded(type_code: int, data: bytes) -> Any:
        depth = getattr(_level, "depth", 0)
        if depth >= MAX_DEPTH:
            raise ValueError(f"a value is nested deeper than {MAX_DEPTH} levels")
        _level.depth = depth + 1
        try:
            return decode(type_code, data)
        finally:
            _level.depth = depth

    bounded.max_depth = MAX_DEPTH  # type: ignore[attr-defined]
    return bounded
