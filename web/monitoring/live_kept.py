"""The stored live states as this process last read them.

A large swarm's is megabytes of JSON, and it changes once per snapshot: it is read and checked once
per process and change instead of once per answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from training.protocol.api import LivePeer, LiveRun
from web.core.kept import Kept
from web.monitoring.livestate import Figures, figures_of
from web.monitoring.models import RunSwarm
from web.runs.models import Run


@dataclass(frozen=True)
class StoredLive:
    """What a stored live state was built from. Shared by all who read it: never changed."""

    figures: Figures
    peers: dict[str, LivePeer]
    rows: dict[str, dict[str, Any]]
    """The peers as JSON has them."""


_kept: Kept[tuple[object, StoredLive]] = Kept(16)
"""By run, each with what tells that the database has another by now."""


def stored_parse(swarm: RunSwarm | None) -> StoredLive:
    """Return what the stored live state was built from; nothing before the first snapshot."""
    if swarm is None or not swarm.live:
        return StoredLive(Figures(), {}, {})
    live = LiveRun.model_validate(swarm.live)
    rows = live.model_dump(mode="json", include={"peers"})["peers"]
    return StoredLive(figures_of(live), live.peers, rows)


def lives_read(runs: Sequence[Run]) -> dict[int, tuple[RunSwarm, StoredLive]]:
    """Return swarm and live state by run, where there is a swarm; one query, two when news came.

    ``runs`` must have been read just now: a state may be newer than its run's number, never older.
    """
    number = {run.pk: run.live_seq for run in runs}
    rows = RunSwarm.objects.defer("trails")
    # What a transaction sees may never come to be, so nothing of it is kept.
    if connection.in_atomic_block:
        return {s.run_id: (s, stored_parse(s)) for s in rows.filter(run_id__in=number)}
    found: dict[int, tuple[RunSwarm, StoredLive]] = {}
    kept = {pk: known for pk in number if (known := _kept.find(pk))}
    if kept:
        for swarm in rows.defer("live").filter(run_id__in=kept):
            version, stored = kept[swarm.run_id]
            if version == _version(swarm, number):
                found[swarm.run_id] = (swarm, stored)
    if missing := number.keys() - found.keys():
        for swarm in rows.filter(run_id__in=missing):
            stored = stored_parse(swarm)
            _kept.keep(swarm.run_id, (_version(swarm, number), stored))
            found[swarm.run_id] = (swarm, stored)
    return found


def _version(swarm: RunSwarm, number: Mapping[int, int]) -> object:
    return number[swarm.run_id], swarm.last_seq, swarm.taken_at, swarm.received_at
