"""A profile that is closed is closed backwards too: in stored live states, events and messages."""

from collections.abc import Collection

from django.utils import timezone

from web.accounts.models import User
from web.accounts.names import HIDDEN_NAME
from web.monitoring.feed import peer_line
from web.monitoring.live import live_stored, live_write, run_lock
from web.monitoring.models import Peer, RunEvent
from web.monitoring.observed import peers_hide
from web.monitoring.services.revocations import runs_lock_of
from web.runs.models import Run


def profile_closed_hide(user: User, **signal: object) -> None:
    """Receiver of ``profile_closed``: take the name out of every run that the account was in."""
    for run in runs_lock_of(user):
        keys = set(
            Peer.objects.filter(run=run, device__user=user).values_list("public_id", flat=True)
        )
        _events_hide(run, keys)
        row, swarm = run_lock(run)
        if not swarm.live:
            row.live_seq += 1  # a report that is taken in now was read with the name
            row.save(update_fields=("live_seq",))
        else:
            _, peers = live_stored(swarm)
            shown = peers_hide(peers, keys)
            live_write(row, swarm, now=timezone.now(), peers=shown, forgets=True)


def _events_hide(run: Run, keys: Collection[str]) -> None:
    for kind in ("joined", "left", "banned"):
        rows = RunEvent.objects.filter(run=run, peer__in=keys, kind=f"peer.{kind}")
        rows.update(text=peer_line(kind, HIDDEN_NAME))
