"""The swarm's time: the site's, whatever this machine's clock says.

hivemind compares clocks: it refuses peers that are 3 s off, drops records that look expired, and
plans averaging rounds by absolute times. All its modules take the time from one function, and
that function is replaced here. The offset lies in memory that forked processes share.
"""

import sys
import time
from ctypes import c_double
from datetime import UTC, datetime
from multiprocessing.sharedctypes import RawValue

import hivemind  # noqa: F401 - its modules must be there to be set right

_offset = RawValue(c_double, 0.0)


def swarm_time() -> float:
    """Return the swarm's time, seconds since 1970."""
    return time.time() + _offset.value


def swarm_now() -> datetime:
    """Return the swarm's time."""
    return datetime.fromtimestamp(swarm_time(), UTC)


def swarm_clock_set(correction: float | None = None) -> None:
    """Set the seconds to add to this machine's clock, for this process and those it forked.

    None keeps them, and only has modules of hivemind that were loaded since go by it too.
    """
    if correction is not None:
        _offset.value = correction
    for name, module in list(sys.modules.items()):
        known = getattr(module, "get_dht_time", None) if name.startswith("hivemind") else None
        if known is not None and known is not swarm_time:
            module.__dict__["get_dht_time"] = swarm_time
