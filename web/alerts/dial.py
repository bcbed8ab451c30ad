"""Whether bootstrap addresses answer: a TCP connection each, bounded in number and time."""

import asyncio
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from training.protocol.states import RunState
from web.alerts.gather import dials_write
from web.runs.models import Run
from web.runs.selectors import config_newest

DIAL_SECONDS = 3.0
"""Raise it when peers on slow links are called down."""
MAX_DIALLED = 8
"""Addresses of one run, the newest first."""
NAMED_WITHIN = timedelta(hours=6)
"""An address that nobody named for so long is no way in any more."""
_TCP = re.compile(r"^/(?:ip4|ip6|dns|dns4|dns6)/([^/]+)/tcp/(\d{1,5})(?:/|$)")


def tcp_target(address: str) -> tuple[str, int] | None:
    """Return host and port of a multiaddress; None when it is not reached by plain TCP."""
    found = _TCP.match(address)
    if found is None or "/p2p-circuit" in address or not 0 < int(found[2]) < 65_536:
        return None
    return found[1], int(found[2])


def bootstraps_dial(now: datetime) -> int:
    """Dial the newest addresses of each open run and keep the answers; return how many."""
    dialled = 0
    for run in Run.objects.filter(state=RunState.OPEN):
        config = config_newest(run)
        rows = run.bootstrap_peers.filter(
            lineage=config.lineage if config else 1, seen_at__gt=now - NAMED_WITHIN
        )
        addresses = list(rows.order_by("-seen_at", "id").values_list("address", flat=True))
        targets = list(dict.fromkeys(filter(None, map(tcp_target, addresses))))[:MAX_DIALLED]
        answers = asyncio.run(targets_dial(targets))
        dials_write(run, {str(i): answer for i, answer in enumerate(answers)}, now)
        dialled += len(answers)
    return dialled


async def targets_dial(
    targets: Sequence[tuple[str, int]], seconds: float = DIAL_SECONDS
) -> list[bool]:
    """Return which of the targets take a connection, all asked at once."""
    return await asyncio.gather(*(_answers(host, port, seconds) for host, port in targets))


async def _answers(host: str, port: int, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError, UnicodeError):
        return False
    writer.transport.abort()
    return True
