"""Heartbeats: a fresh pass out, the trainer's own word in, commands along."""

from datetime import datetime

from django.db import transaction

from training.protocol.api import PassRequest, PassResponse
from training.protocol.errors import ErrorCode
from training.protocol.states import Command, Role, RunState
from training.protocol.versions import is_version_at_least
from web.accounts.credentials import Credential
from web.accounts.devices import device_seen
from web.core.errors import AppError
from web.monitoring.models import Peer
from web.monitoring.services.joins import pass_make
from web.monitoring.services.messages import peer_messages_take
from web.monitoring.services.revocations import revocations_current, revocations_signed
from web.runs.models import Run, RunConfigVersion
from web.runs.selectors import (
    bar_refuse,
    bootstrap_addresses,
    config_current,
    device_bar_refuse,
)


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
    if credential.device is not None:
        device_bar_refuse(run, credential.device)
    if run.state == RunState.ARCHIVED:
        raise AppError(ErrorCode.RUN_OVER)
    config = config_current(run)
    revocations = revocations_signed(revocations_current(run), now)
    peer = _peer_lock(credential, run)
    peer.heartbeat_at, peer.heartbeat = now, request.model_dump(mode="json")
    peer.trainer_version = request.trainer_version or peer.trainer_version
    messages = peer_messages_take(peer, request.message_seen, now)
    commands = _commands(run, peer, config)
    peer.commands = []
    peer.save(update_fields=("heartbeat_at", "heartbeat", "trainer_version", "commands"))
    device_seen(peer.device, now)
    return PassResponse(
        peer_pass=pass_make(peer),
        commands=commands,
        messages=messages,
        config_version=config.version,
        bootstrap_peers=tuple(bootstrap_addresses(run, peer.peer_id, now=now)),
        revocations=revocations,
    )


def _peer_lock(credential: Credential, run: Run) -> Peer:
    if credential.device is None:
        raise AppError(ErrorCode.NOT_JOINED)
    peers = Peer.objects.select_for_update(of=("self",)).select_related("device__user", "run")
    peer = peers.filter(run=run, device=credential.device).first()
    if peer is None:
        raise AppError(ErrorCode.NOT_JOINED)
    return peer


def _commands(run: Run, peer: Peer, config: RunConfigVersion) -> tuple[Command, ...]:
    found = [Command(name) for name in peer.commands]
    if peer.role != Role.COORDINATOR:
        found += _commands_of_state(run, peer)
    if not is_version_at_least(peer.trainer_version, str(config.body["min_trainer_version"])):
        found.append(Command.UPGRADE)
    return tuple(dict.fromkeys(found))


def _commands_of_state(run: Run, peer: Peer) -> list[Command]:
    """Every heartbeat repeats what the run's state asks for; repeating does no harm.

    Answers get lost: a trainer that was told to rest hears until it goes on that it may.
    """
    match RunState(run.state):
        case RunState.PAUSED:
            return [Command.PAUSE]
        case RunState.FINISHING | RunState.FINISHED:
            return [Command.FINISH]
        case _ if peer.paused_at is not None:
            return [Command.PAUSE]
        case RunState.OPEN:
            return [Command.RESUME]
        case _:
            return []
