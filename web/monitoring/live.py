"""The live state in the database: read as facts, written with its number, pushed on commit."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from training.protocol.api import LivePeer, LiveRun
from training.protocol.states import RunState
from web.core.events import event_publish, live_ring_drop
from web.monitoring.feed import EventLine
from web.monitoring.live_kept import StoredLive, stored_parse
from web.monitoring.livestate import Figures, RunFacts, live_run_build, state_diff
from web.monitoring.models import RunEvent, RunSwarm
from web.monitoring.moments import turn_note
from web.runs.models import Run, RunConfigVersion
from web.runs.selectors import checkpoint_latest, config_newest


def run_lock(run: Run) -> tuple[Run, RunSwarm]:
    """Return the run and its swarm, fresh and locked until the transaction ends."""
    row = Run.objects.select_for_update().get(pk=run.pk)
    swarm = RunSwarm.objects.filter(run=row).first() or RunSwarm.objects.create(run=row)
    return row, swarm


def facts_of(
    run: Run,
    swarm: RunSwarm | None,
    config: RunConfigVersion | None,
    checkpoint_epoch: int | None,
) -> RunFacts:
    """Return what the site itself knows of a run."""
    body: Mapping[str, Any] = config.body["swarm"] if config else {}
    return RunFacts(
        slug=run.slug,
        title=run.title,
        run_state=RunState(run.state),
        run_text=run.state_reason,
        changed_at=run.state_changed_at,
        config_version=config.version if config else 0,
        target_batch_size=body.get("target_batch_size", 1),
        min_peers=body.get("min_peers", 1),
        checkpoint_epoch=checkpoint_epoch,
        heard_at=swarm.received_at if swarm else None,
        max_epochs=config.body.get("max_epochs") if config else None,
    )


def live_stored(swarm: RunSwarm | None) -> tuple[Figures, dict[str, LivePeer]]:
    """Return what the stored live state was built from; nothing before the first snapshot."""
    stored = stored_parse(swarm)
    return stored.figures, stored.peers


def live_now(
    run: Run,
    known: tuple[RunSwarm, StoredLive] | None,
    config: RunConfigVersion | None,
    *,
    checkpoint_epoch: int | None,
    now: datetime,
) -> LiveRun:
    """Return the live state as it has to be read at ``now``, of what ``lives_read`` found."""
    swarm, stored = known or (None, stored_parse(None))
    facts = facts_of(run, swarm, config, checkpoint_epoch)
    return live_run_build(facts, stored.figures, stored.peers, seq=run.live_seq, now=now)


def live_write(
    run: Run,
    swarm: RunSwarm,
    *,
    now: datetime,
    figures: Figures | None = None,
    peers: Mapping[str, LivePeer] | None = None,
    events: Sequence[EventLine] = (),
    forgets: bool = False,
) -> bool:
    """Store the live state as of ``now`` and push what changed; return whether anything did.

    Figures and peers stay as they are unless given. Each event and the patch take one number
    each; the patch comes last, so that whoever has the state has the events too. The caller
    holds the lock of ``run`` (see :func:`run_lock`).

    With ``forgets`` nobody keeps or is sent again what was pushed before: a number that belongs
    to no message makes everybody throw their messages away and read the whole state.
    """
    known_figures, known_peers = live_stored(swarm)
    checkpoint = checkpoint_latest(run)
    facts = facts_of(run, swarm, config_newest(run), checkpoint.epoch if checkpoint else None)
    figures = known_figures if figures is None else figures
    peers = known_peers if peers is None else peers
    live = live_run_build(facts, figures, peers, seq=run.live_seq, now=now)
    if not events and not forgets and not state_diff(swarm.live, live.model_dump(mode="json")):
        return False
    if forgets:
        run.live_seq += 1
        transaction.on_commit(lambda: live_ring_drop(run.slug))
    messages = _events_write(run, events, now)
    run.live_seq += 1
    run.save(update_fields=("live_seq",))
    state = live.model_copy(update={"seq": run.live_seq}).model_dump(mode="json")
    # A page that was read while the coordinator was silent may show another state than the
    # stored one: the words are part of every patch.
    words = {name: state[name] for name in ("state", "reason")}
    patch = state_diff(swarm.live, state) | words
    messages.append(_message("run.patch", state, run.live_seq, patch=patch))
    turn_note(run, swarm.live, state, now)
    swarm.live = state
    swarm.save()
    transaction.on_commit(lambda: _publish(run.slug, messages, state))
    return True


def _events_write(run: Run, events: Sequence[EventLine], now: datetime) -> list[dict[str, Any]]:
    messages = []
    rows = []
    for line in events:
        run.live_seq += 1
        text = line.text[:300]
        rows.append(
            RunEvent(run=run, seq=run.live_seq, at=now, kind=line.kind, text=text, peer=line.peer)
        )
        body = {"kind": line.kind, "text": text, "at": now.isoformat()}
        messages.append(_message("run.event", {"as_of": now.isoformat()}, run.live_seq, event=body))
    RunEvent.objects.bulk_create(rows)
    return messages


def _message(kind: str, state: Mapping[str, Any], seq: int, **member: Any) -> dict[str, Any]:
    return {"type": kind, "seq": seq, "as_of": state["as_of"], **member}


def _publish(slug: str, messages: Sequence[dict[str, Any]], state: dict[str, Any]) -> None:
    *events, patch = messages
    for message in events:
        event_publish(slug, message)
    event_publish(slug, patch, state=state)
