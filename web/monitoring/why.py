"""Why was I not counted? The chain from login to ledger, up to the first broken link."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from training.protocol.states import RunState
from web.accounts.models import Device
from web.contributions.models import LedgerEntry
from web.contributions.services import barred_reason
from web.monitoring.evidence import COORDINATOR_SILENT_SECONDS, age
from web.monitoring.models import Peer, RunSwarm
from web.monitoring.versions import is_version_at_least
from web.runs.models import Run, RunConfigVersion
from web.runs.selectors import barred_user_ids, config_newest

HEARTBEAT_FRESH = timedelta(minutes=2)
SEEN_FRESH = timedelta(minutes=1)


@dataclass(frozen=True)
class Link:
    """One check. ``remedy`` is empty when it holds."""

    step: str
    ok: bool
    text: str
    remedy: str = ""


@dataclass(frozen=True)
class _Case:
    run: Run
    device: Device
    peer: Peer | None
    swarm: RunSwarm | None
    config: RunConfigVersion | None
    now: datetime


def why_chain(run: Run, device: Device, *, now: datetime | None = None) -> list[Link]:
    """Return the checks in order; the last one is the first that fails, or all hold."""
    case = _Case(
        run=run,
        device=device,
        peer=Peer.objects.filter(run=run, device=device).first(),
        swarm=RunSwarm.objects.filter(run=run).first(),
        config=config_newest(run),
        now=now or timezone.now(),
    )
    chain: list[Link] = []
    for link in _links(case):
        chain.append(link)
        if not link.ok:
            break
    return chain


def _links(case: _Case) -> Iterator[Link]:
    checks: tuple[Callable[[_Case], Link], ...] = (
        _account, _joined, _open, _version, _heartbeat, _coordinator, _in_swarm, _counted,
    )  # fmt: skip
    return (check(case) for check in checks)


def _account(case: _Case) -> Link:
    barred = barred_reason(case.device, barred_user_ids(case.run))
    if barred:
        remedy = "Write to the organisers, or link the machine anew with `beeyard join`."
        return Link("account", False, f"Nothing is counted: {barred}.", remedy)
    return Link("account", True, f"{case.device.name} is linked to {case.device.user.username}.")


def _joined(case: _Case) -> Link:
    if case.peer is None:
        text = "This machine has not joined the run."
        return Link("joined", False, text, "Run `beeyard join` with the run's address.")
    return Link("joined", True, f"It joined as peer …{case.peer.peer_id[-8:]}.")


def _open(case: _Case) -> Link:
    if case.run.state == RunState.OPEN:
        return Link("run", True, "The run is open.")
    text = f"The run was {case.run.state_reason or 'not opened yet'}."
    return Link("run", False, text, "Nothing is wrong on your side; watch the run's page.")


def _version(case: _Case) -> Link:
    version = case.peer.trainer_version if case.peer else ""
    wanted = str(case.config.body["min_trainer_version"]) if case.config else ""
    if is_version_at_least(version, wanted):
        return Link("version", True, f"The trainer's version, {version}, is new enough.")
    text = f"The trainer is too old: {version or 'unknown'}, {wanted} is needed."
    return Link("version", False, text, "Install the version that the run's page offers.")


def _heartbeat(case: _Case) -> Link:
    at = case.peer.heartbeat_at if case.peer else None
    if at is None or case.now - at > HEARTBEAT_FRESH:
        text = f"The last heartbeat came {_ago(at, case.now)}."
        remedy = "Start `beeyard join` again; if it runs, check its network."
        return Link("heartbeat", False, text, remedy)
    return Link("heartbeat", True, f"The last heartbeat came {_ago(at, case.now)}.")


def _coordinator(case: _Case) -> Link:
    at = case.swarm.received_at if case.swarm else None
    if at is None or (case.now - at).total_seconds() > COORDINATOR_SILENT_SECONDS:
        text = f"The coordinator was last heard {_ago(at, case.now)}."
        remedy = "This is our side: it counts what it missed when it is back. Keep training."
        return Link("coordinator", False, text, remedy)
    return Link("coordinator", True, "The coordinator reports.")


def _in_swarm(case: _Case) -> Link:
    at = case.peer.seen_at if case.peer else None
    if at is None or case.now - at > SEEN_FRESH:
        text = f"The coordinator saw its signed records {_ago(at, case.now)}."
        remedy = "Wait a minute after the start; then run `beeyard doctor` with the run's address."
        return Link("swarm", False, text, remedy)
    return Link("swarm", True, f"The coordinator saw its signed records {_ago(at, case.now)}.")


def _counted(case: _Case) -> Link:
    entries = LedgerEntry.objects.filter(run=case.run, device=case.device, corrects=None)
    entry = entries.order_by("-pk").first()
    if entry is None:
        text = "No finished epoch has counted it yet."
        remedy = "Samples are counted when an epoch ends with you in it: stay until the next one."
        return Link("counted", False, text, remedy)
    if entry.reason:
        text = f"{entry.samples} samples of epoch {entry.epoch} were not counted: {entry.reason}."
        return Link("counted", False, text, "Write to the organisers.")
    return Link("counted", True, f"{entry.samples} samples of epoch {entry.epoch} were counted.")


def _ago(at: datetime | None, now: datetime) -> str:
    return "never" if at is None else f"{age((now - at).total_seconds())} ago"
