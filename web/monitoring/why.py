"""Why was I not counted? The chain from login to ledger, up to the first link that does not hold.

The last links, about finished epochs, are in :mod:`web.monitoring.why_work`.
"""

from collections.abc import Callable, Iterator
from datetime import datetime

from django.utils import timezone

from training.protocol.states import RunState
from training.protocol.versions import is_version_at_least
from web.accounts.models import Device
from web.contributions.services import barred_reason
from web.monitoring.evidence import COORDINATOR_SILENT_SECONDS
from web.monitoring.models import Peer, RunSwarm
from web.monitoring.why_links import HEARTBEAT_FRESH, SEEN_FRESH, Case, Link, ago
from web.monitoring.why_work import averaged, counted, newest_entry, plausible
from web.runs.models import Run
from web.runs.selectors import config_newest, run_barred


def why_chain(run: Run, device: Device, *, now: datetime | None = None) -> list[Link]:
    """Return the checks in order; the last one is the first that does not hold, or all do."""
    case = Case(
        run=run,
        device=device,
        peer=Peer.objects.filter(run=run, device=device).first(),
        swarm=RunSwarm.objects.filter(run=run).first(),
        config=config_newest(run),
        entry=newest_entry(run, device),
        now=now or timezone.now(),
    )
    chain: list[Link] = []
    for link in _links(case):
        chain.append(link)
        if link.ok is not True:
            break
    return chain


def _links(case: Case) -> Iterator[Link]:
    checks: tuple[Callable[[Case], Link], ...] = (
        _account, _joined, _open, _version, _heartbeat, _coordinator, _in_swarm, _key, _config,
        averaged, plausible, counted,
    )  # fmt: skip
    return (check(case) for check in checks)


def _account(case: Case) -> Link:
    barred = barred_reason(case.device, run_barred(case.run))
    if barred:
        remedy = "Write to the organisers, or link the machine anew with `beeyard join`."
        return Link("account", False, f"Nothing is counted: {barred}.", remedy)
    return Link("account", True, f"{case.device.name} is linked to {case.device.user.username}.")


def _joined(case: Case) -> Link:
    if case.peer is None:
        text = "This machine has not joined the run."
        return Link("joined", False, text, "Run `beeyard join` with the run's address.")
    return Link("joined", True, f"It joined as peer …{case.peer.peer_id[-8:]}.")


def _open(case: Case) -> Link:
    if case.run.state == RunState.OPEN:
        return Link("run", True, "The run is open.")
    text = f"The run was {case.run.state_reason or 'not opened yet'}."
    return Link("run", False, text, "Nothing is wrong on your side; watch the run's page.")


def _version(case: Case) -> Link:
    version = case.peer.trainer_version if case.peer else ""
    wanted = str(case.config.body["min_trainer_version"]) if case.config else ""
    if is_version_at_least(version, wanted):
        return Link("version", True, f"The trainer's version, {version}, is new enough.")
    text = f"The trainer is too old: {version or 'unknown'}, {wanted} is needed."
    return Link("version", False, text, "Install the version that the run's page offers.")


def _heartbeat(case: Case) -> Link:
    at = case.peer.heartbeat_at if case.peer else None
    if at is None or case.now - at > HEARTBEAT_FRESH:
        text = f"The last heartbeat came {ago(at, case.now)}."
        remedy = "Start `beeyard join` again; if it runs, check its network."
        return Link("heartbeat", False, text, remedy)
    return Link("heartbeat", True, f"The last heartbeat came {ago(at, case.now)}.")


def _coordinator(case: Case) -> Link:
    at = case.swarm.received_at if case.swarm else None
    if at is None or (case.now - at).total_seconds() > COORDINATOR_SILENT_SECONDS:
        text = f"The coordinator was last heard {ago(at, case.now)}."
        remedy = "This is our side: it counts what it missed when it is back. Keep training."
        return Link("coordinator", False, text, remedy)
    return Link("coordinator", True, "The coordinator reports.")


def _in_swarm(case: Case) -> Link:
    at = case.shown_at
    if at is None or case.now - at > SEEN_FRESH:
        text = f"The coordinator saw its records {ago(at, case.now)}."
        remedy = "Wait a minute after the start; then run `beeyard doctor` with the run's address."
        return Link("swarm", False, text, remedy)
    return Link("swarm", True, f"The coordinator saw its records {ago(at, case.now)}.")


def _key(case: Case) -> Link:
    at, name = case.peer.seen_at if case.peer else None, case.device.user.username
    if at is None or case.now - at > SEEN_FRESH:
        text = f"Its records are not signed with the key that is bound to {name}, or are too old."
        remedy = "Set the clock; then `beeyard logout --new-key` and `beeyard join` make new keys."
        return Link("key", False, text, remedy)
    return Link("key", True, f"They are signed with the key that is bound to {name}.")


def _config(case: Case) -> Link:
    wanted, version = (case.config.lineage, case.config.version) if case.config else (0, 0)
    if case.peer and case.peer.lineage != wanted:
        text = f"It trains by an old config of the run, which has a new lineage, {wanted}, now."
        remedy = "It should take over the new config by itself; else start `beeyard join` again."
        return Link("config", False, text, remedy)
    return Link("config", True, f"It trains by the run's current config, version {version}.")
