"""Heartbeats bring a fresh pass and what the run's state asks for."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import device_make, token_make
from tests.factories_runs import Volunteer, config_publish, peer_make, run_make
from training.protocol.api import PassRequest, PassResponse
from training.protocol.envelope import peek_body
from training.protocol.errors import ErrorCode
from training.protocol.states import Command, Role, RunState
from web.accounts.credentials import credential_of_token
from web.accounts.models import Device, User
from web.core.errors import AppError
from web.monitoring.models import Peer
from web.monitoring.services import peer_command_add, peer_heartbeat
from web.runs.models import Run
from web.runs.services import bootstrap_peers_mark, run_transition

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(alice: User) -> Run:
    return run_make(alice)


@pytest.fixture
def member(run: Run, bob: User) -> Volunteer:
    return peer_make(run, bob)


def beat(run: Run, member: Volunteer, **report: object) -> PassResponse:
    token = token_make(member.device.user, device=member.device)
    now = timezone.now()
    request = PassRequest.model_validate(report)
    return peer_heartbeat(credential_of_token(token, now), run, request, now)


def test_a_heartbeat_is_noted_and_answered_with_a_pass(run: Run, member: Volunteer) -> None:
    Device.objects.update(last_seen_at=None)
    address = f"/ip4/10.0.0.9/tcp/1/p2p/{member.peer.peer_id}"
    bootstrap_peers_mark(run, 1, [address, "/ip4/10.0.0.1/tcp/1/p2p/QmA"], timezone.now())
    answer = beat(run, member, epoch=3, samples=77, trainer_version="0.3.0")

    peer = Peer.objects.get()
    assert peer.heartbeat["samples"] == 77
    assert peer.trainer_version == "0.3.0"
    assert Device.objects.get().last_seen_at == peer.heartbeat_at
    assert peek_body(answer.peer_pass)["device"] == member.device.public_id
    assert (answer.commands, answer.config_version) == ((Command.RESUME,), 1)
    assert answer.bootstrap_peers == ("/ip4/10.0.0.1/tcp/1/p2p/QmA",)


def test_the_runs_state_becomes_a_command(run: Run, alice: User, member: Volunteer) -> None:
    run_transition(alice, run, "pause", "lunch")
    assert beat(run, member).commands == (Command.PAUSE,)
    run_transition(alice, run, "open")
    assert beat(run, member).commands == (Command.RESUME,)
    Run.objects.update(state_changed_at=timezone.now() - timedelta(minutes=11))
    run.refresh_from_db()
    assert beat(run, member).commands == (Command.RESUME,), "answers may have been lost so long"
    run_transition(alice, run, "finish")
    assert beat(run, member).commands == (Command.FINISH,)
    Run.objects.update(state=RunState.FINISHED)
    run.refresh_from_db()
    assert beat(run, member).commands == (Command.FINISH,)


def test_a_coordinator_is_not_told_to_pause(run: Run, alice: User, bob: User) -> None:
    member = peer_make(run, bob, role=Role.COORDINATOR)
    run_transition(alice, run, "pause")
    assert beat(run, member).commands == ()


def test_a_command_is_handed_out_once(
    run: Run, alice: User, charlie: User, member: Volunteer
) -> None:
    with pytest.raises(AppError) as error:
        peer_command_add(charlie, member.peer, Command.RELOAD_STATE)
    assert error.value.code == ErrorCode.FORBIDDEN
    peer_command_add(alice, member.peer, Command.RELOAD_STATE)
    peer_command_add(alice, member.peer, Command.RELOAD_STATE)
    assert beat(run, member).commands == (Command.RELOAD_STATE, Command.RESUME)
    assert beat(run, member).commands == (Command.RESUME,)


def test_a_trainer_that_became_too_old_is_told(run: Run, member: Volunteer) -> None:
    config_publish(run, min_trainer_version="9.0")
    answer = beat(run, member)
    assert answer.commands == (Command.RESUME, Command.UPGRADE)
    assert answer.config_version == 2


def test_a_pass_is_for_the_swarm_that_the_trainer_joined(run: Run, member: Volunteer) -> None:
    config_publish(run, task={"name": "tiny", "params": {"hidden": 9}})
    answer = beat(run, member)
    assert answer.config_version == 2
    assert peek_body(answer.peer_pass)["lineage"] == 1


def test_heartbeats_of_strangers_are_refused(run: Run, bob: User, member: Volunteer) -> None:
    now = timezone.now()
    other, _ = device_make(bob)
    for token in (token_make(bob), token_make(bob, device=other)):
        with pytest.raises(AppError) as error:
            peer_heartbeat(credential_of_token(token, now), run, PassRequest(), now)
        assert error.value.code == ErrorCode.NOT_JOINED
    credential = credential_of_token(token_make(bob, device=member.device), now)
    run.state = RunState.ARCHIVED
    with pytest.raises(AppError) as error:
        peer_heartbeat(credential, run, PassRequest(), now)
    assert error.value.code == ErrorCode.RUN_OVER
    credential.user.banned_at = now
    with pytest.raises(AppError) as error:
        peer_heartbeat(credential, run, PassRequest(), now)
    assert error.value.code == ErrorCode.BANNED
