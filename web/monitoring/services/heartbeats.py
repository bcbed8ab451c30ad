"""Heartbeats: a fresh pass out, the trainer's own word in, commands along."""

from datetime import datetime, timedelta

from django.db import transaction

from training.protocol.api import PassRequest, PassResponse
from training.protocol.errors import ErrorCode
from training.protocol.states import Command, Role, RunState
from web.accounts.credentials import Credential
from web.accounts.devices import device_seen
from web.accounts.models import User
from web.core.audit import audit_record
from web.core.errors import AppError
from web.monitoring.models import Peer
from web.monitoring.services.joins import pass_make
from web.monitoring.services.revocations import revocations_current, revocations_signed
from web.monitoring.versions import is_version_at_least
from web.runs.models import Run, RunConfigVersion
from web.runs.selectors import bar_refuse, bootstrap_addresses, config_current
from web.runs.services.runs import organiser_require

RESUME_FOR = timedelta(minutes=10)
"""After a run was opened again, heartbeats say so for this long: an answer may get lost."""


@transaction.atomic
def peer_heartbeat(
    credential: Credential, run: Run, request: PassRequest, now: datetime
) -> PassResponse:
    """Note the trainer's report and answer with a fresh pass and what it should do.

    Raises:
        AppError: BANNED, BARRED, NOT_JOINED, RUN_OVER (archived) or CONFIG_MISSING.
    """
    if credential.user.is_banned:
        raise AppError(ErrorCode.BANNED, credential.user.ban_text)
    bar_refuse(run, credential.user)
    if run.state == RunState.ARCHIVED:
        raise AppError(ErrorCode.RUN_OVER)
    config = config_current(run)
    revocations = revocations_signed(revocations_current(run), now)
    peer = _peer_lock(credential, run)
    peer.heartbeat_at, peer.heartbeat = now, request.model_dump(mode="json")
    peer.trainer_version = request.trainer_version or peer.trainer_version
    commands = _commands(run, peer, config, now)
    peer.commands = []
    peer.save(update_fields=("heartbeat_at", "heartbeat", "trainer_version", "commands"))
    device_seen(peer.device, now)
    return PassResponse(
        peer_pass=pass_make(peer),
        commands=commands,
        config_version=config.version,
        bootstrap_peers=tuple(bootstrap_addresses(run, peer.peer_id, now=now)),
        revocations=revocations,
    )


@transaction.atomic
def peer_command_add(actor: User, peer: Peer, command: Command) -> None:
    """Leave a command for the peer's next heartbeat.

    Raises:
        AppError: FORBIDDEN.
    """
    organiser_require(actor, peer.run)
    row = Peer.objects.select_for_update().get(pk=peer.pk)
    row.commands = [*(c for c in row.commands if c != command), str(command)]
    row.save(update_fields=("commands",))
    peer.commands = row.commands
    audit_record(
        actor, "peer.command.sent", f"{peer.run.slug}/{peer.public_id}", {"command": str(command)}
    )


def _peer_lock(credential: Credential, run: Run) -> Peer:
    if credential.device is None:
        raise AppError(ErrorCode.NOT_JOINED)
    peers = Peer.objects.select_for_update(of=("self",)).select_related("device__user", "run")
    peer = peers.filter(run=run, device=credential.device).first()
    if peer is None:
        raise AppError(ErrorCode.NOT_JOINED)
    return peer


def _commands(run: Run, peer: Peer, config: RunConfigVersion, now: datetime) -> tuple[Command, ...]:
    found = [Command(name) for name in peer.commands]
    if peer.role != Role.COORDINATOR:
        found += _commands_of_state(run, peer, now)
    if not is_version_at_least(peer.trainer_version, str(config.body["min_trainer_version"])):
        found.append(Command.UPGRADE)
    return tuple(dict.fromkeys(found))


def _commands_of_state(run: Run, peer: Peer, now: datetime) -> list[Command]:
    """Every heartbeat repeats what the run's state asks for; repeating does no harm."""
    match RunState(run.state):
        case RunState.PAUSED:
            return [Command.PAUSE]
        case RunState.FINISHING | RunState.FINISHED:
            return [Command.FINISH]
        case RunState.OPEN if peer.joined_at < run.state_changed_at >= now - RESUME_FOR:
            return [Command.RESUME]
        case _:
            return []
