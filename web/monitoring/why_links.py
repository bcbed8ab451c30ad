"""A chain's links, and what they are judged by."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from web.accounts.models import Device
from web.contributions.models import LedgerEntry
from web.monitoring.evidence import age
from web.monitoring.models import Peer, RunSwarm
from web.runs.models import Run, RunConfigVersion

HEARTBEAT_FRESH = timedelta(minutes=2)
SEEN_FRESH = timedelta(minutes=1)


@dataclass(frozen=True)
class Link:
    """One check. ``remedy`` is empty when it holds."""

    step: str
    ok: bool | None
    """None: not decided yet."""
    text: str
    remedy: str = ""


@dataclass(frozen=True)
class Case:
    """A machine in a run."""

    run: Run
    device: Device
    peer: Peer | None
    swarm: RunSwarm | None
    config: RunConfigVersion | None
    entry: LedgerEntry | None
    """Its newest one, in the newest state."""
    now: datetime

    @property
    def shown_at(self) -> datetime | None:
        """When the coordinator last showed its key in the swarm, whether or not signed well."""
        if self.peer is None:
            return None
        rows = (self.swarm.live if self.swarm else {}).get("peers", {})
        row = rows.get(self.peer.public_id)
        shown = datetime.fromisoformat(row["seen_at"]) if row else None
        return max(filter(None, (self.peer.seen_at, shown)), default=None)


def ago(at: datetime | None, now: datetime) -> str:
    """Return how long ago something was, in words."""
    return "never" if at is None else f"{age((now - at).total_seconds())} ago"
