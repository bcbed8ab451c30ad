"""Joining: both keys are proved, and account, device and peer are bound."""

import base64
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.utils import timezone
from joserfc.jwk import OKPKey
from pytest_django import Settings

from tests.factories import token_make, user_make
from tests.factories_runs import (
    config_publish,
    draft_make,
    join_request,
    run_make,
    swarm_key,
    swarm_key_der,
)
from tests.servers import port_free
from training.protocol.api import JoinResponse
from training.protocol.claims import PeerPass
from training.protocol.config import RunConfig
from training.protocol.envelope import peek_body, verify
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_generate, public_jwk
from training.protocol.names import TYP_CONFIG, TYP_PASS
from training.protocol.states import Role, RunState
from training.protocol.versions import is_version_at_least
from web.accounts.credentials import credential_of_token
from web.accounts.models import Device, User
from web.core.errors import AppError
from web.core.keys import site_keys_public
from web.monitoring.models import Peer, RunSwarm
from web.monitoring.services import challenge_issue, peer_join
from web.runs.models import Checkpoint, Run, RunMember
from web.runs.services import bootstrap_peers_mark, run_rewind, run_transition

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(alice: User) -> Run:
    return run_make(alice)


def join(
    run: Run,
    user: User,
    device: OKPKey | None = None,
    *,
    number: int = 0,
    scope: str = "device",
    token: str = "",
    **changes: Any,
) -> JoinResponse:
    now = timezone.now()
    credential = credential_of_token(token or token_make(user, scope), now)
    challenge = changes.pop("challenge", None) or challenge_issue(run, user, now).challenge
    request = join_request(
        challenge, device or key_generate(), swarm_key(number), slug=run.slug, **changes
    )
    return peer_join(credential, run, request, now)


def refused(run: Run, user: User, **changes: Any) -> AppError:
    with pytest.raises(AppError) as error:
        join(run, user, **changes)
    return error.value


def test_a_volunteer_joins_and_gets_config_pass_and_addresses(run: Run, bob: User) -> None:
    now = timezone.now()
    bootstrap_peers_mark(run, 1, ["/ip4/10.0.0.1/tcp/1/p2p/QmA"], now)
    Checkpoint.objects.create(
        run=run, lineage=1, epoch=7, config_version=1, files=[], manifest="x", saved_at=now
    )
    answer = join(run, bob)

    config = verify(
        answer.config, typ=TYP_CONFIG, model=RunConfig, keys=site_keys_public(), now=now
    ).body
    claims = verify(
        answer.peer_pass,
        typ=TYP_PASS,
        model=PeerPass,
        keys=site_keys_public(),
        now=now + timedelta(minutes=29),
    ).body
    peer = Peer.objects.get()
    assert config.run == claims.run == "demo"
    assert (claims.sub, claims.device, claims.role) == ("bob", answer.device_id, Role.TRAINER)
    assert (claims.peer_id, claims.key_thumbprint) == (peer.peer_id, peer.key_thumbprint)
    assert answer.bootstrap_peers == ("/ip4/10.0.0.1/tcp/1/p2p/QmA",)
    assert (answer.min_epoch, answer.checkpoint) == (7, "x")
    assert Device.objects.get().hardware["device"] == "cpu"
    assert RunMember.objects.filter(run=run, user=bob, part="volunteer").exists()


def test_after_a_roll_back_the_state_to_begin_with_is_the_newest(
    run: Run, alice: User, bob: User
) -> None:
    now = timezone.now()
    saved = [
        Checkpoint.objects.create(
            run=run,
            lineage=1,
            epoch=epoch,
            config_version=1,
            files=[],
            manifest=f"epoch {epoch}",
            saved_at=now,
        )
        for epoch in (10, 20)
    ]
    run_rewind(alice, run, saved[0])
    answer = join(run, bob)
    assert (answer.min_epoch, answer.checkpoint) == (10, "epoch 10")
    saved[0].delete()
    assert (join(run, bob).min_epoch, join(run, bob).checkpoint) == (10, "")


def test_joining_again_is_the_same_peer(run: Run, bob: User) -> None:
    device, token = key_generate(), token_make(bob)
    first = join(run, bob, device, token=token)
    second = join(run, bob, device, token=token)
    assert first.device_id == second.device_id
    assert Peer.objects.count() == Device.objects.count() == 1
    config_publish(run, task={"name": "tiny", "params": {"hidden": 9}})
    third = join(run, bob, device, token=token)
    assert peek_body(third.peer_pass)["lineage"] == peek_body(third.config)["lineage"] == 2


def test_a_swarm_key_moves_to_the_new_device_of_the_same_account(run: Run, bob: User) -> None:
    join(run, bob)
    before = Peer.objects.get()
    answer = join(run, bob)
    after = Peer.objects.get()
    assert (after.pk, after.device.public_id) == (before.pk, answer.device_id)
    assert after.device_id != before.device_id


def test_a_device_may_take_another_swarm_key_and_that_of_a_sibling(run: Run, bob: User) -> None:
    device, token = key_generate(), token_make(bob)
    join(run, bob, device, token=token, number=0)
    join(run, bob, device, token=token, number=1)
    assert Peer.objects.count() == 1
    join(run, bob, number=2)
    assert Peer.objects.count() == 2
    join(run, bob, device, token=token, number=2)
    assert Peer.objects.count() == 1


def test_a_swarm_key_of_another_account_is_taken_in_every_run(
    run: Run, alice: User, bob: User, charlie: User
) -> None:
    join(run, bob)
    assert refused(run, charlie).code == ErrorCode.PEER_ID_TAKEN
    assert refused(run_make(alice, "other"), charlie).code == ErrorCode.PEER_ID_TAKEN


def test_only_a_coordinators_token_coordinates(run: Run, bob: User) -> None:
    service = user_make("yard", is_service=True)
    assert refused(run, bob, role=Role.COORDINATOR).code == ErrorCode.FORBIDDEN
    code = refused(run, bob, role=Role.COORDINATOR, scope="coordinator").code
    assert code == ErrorCode.FORBIDDEN
    RunSwarm.objects.filter(run=run).update(last_seq=9)
    device, token = key_generate(), token_make(service, "coordinator")
    join(run, service, device, token=token, role=Role.COORDINATOR, number=1)
    swarm = RunSwarm.objects.get()
    assert (swarm.coordinator, swarm.last_seq) == (Device.objects.get(), 0)
    RunSwarm.objects.update(last_seq=4)
    join(run, service, device, token=token, role=Role.COORDINATOR, number=1)
    assert RunSwarm.objects.get().last_seq == 4


@pytest.mark.parametrize(
    ("moves", "code", "coordinator_may"),
    [
        ((), ErrorCode.RUN_NOT_OPEN, False),
        (("open", "pause"), ErrorCode.RUN_NOT_OPEN, True),
        (("open", "finish"), ErrorCode.RUN_OVER, True),
    ],
)
def test_a_run_that_is_not_open_takes_no_trainers(
    alice: User, bob: User, moves: tuple[str, ...], code: ErrorCode, coordinator_may: bool
) -> None:
    run = run_make(alice, is_open=False)
    for move in moves:
        run_transition(alice, run, move, "disk full")
    error = refused(run, bob)
    assert error.code == code
    if "pause" in moves:
        assert error.detail == "This run was paused by alice: disk full."
    if coordinator_may:
        join(run, alice, scope="coordinator", role=Role.COORDINATOR)
    else:
        assert refused(run, alice, scope="coordinator", role=Role.COORDINATOR).code == code


def test_a_run_without_config_cannot_be_joined(alice: User, bob: User, run: Run) -> None:
    run.configs.all().delete()
    assert refused(run, bob).code == ErrorCode.CONFIG_MISSING


def test_an_old_trainer_is_told_to_upgrade(run: Run, bob: User) -> None:
    config_publish(run, min_trainer_version="0.2.0")
    error = refused(run, bob)
    assert error.code == ErrorCode.TRAINER_TOO_OLD
    assert "0.2.0" in error.detail


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"peer_id": "QmSomebodyElse"}, ErrorCode.BODY_INVALID),
        ({"proof": {"peer_id": "QmSomebodyElse"}}, ErrorCode.BODY_INVALID),
        ({"proof": {"key_thumbprint": "0" * 64}}, ErrorCode.BODY_INVALID),
        ({"proof": {"run": "other"}}, ErrorCode.CHALLENGE_INVALID),
        ({"proof": {"swarm_signature": "AAAA"}}, ErrorCode.CHALLENGE_INVALID),
        ({"proof": {"swarm_signature": "?"}}, ErrorCode.CHALLENGE_INVALID),
        ({"proof": {"jwk": {"kty": "OKP"}}}, ErrorCode.BODY_INVALID),
        ({"swarm_public_key": "AAAA"}, ErrorCode.BODY_INVALID),
        ({"swarm_public_key": "?"}, ErrorCode.BODY_INVALID),
        ({"device_proof": "garbage"}, ErrorCode.BODY_INVALID),
        ({"challenge": "garbage"}, ErrorCode.CHALLENGE_INVALID),
    ],
)
def test_a_proof_that_does_not_fit_is_refused(
    run: Run, bob: User, changes: dict[str, Any], code: ErrorCode
) -> None:
    assert refused(run, bob, **changes).code == code
    assert not Peer.objects.exists()
    assert not Device.objects.exists()


def test_a_swarm_key_that_is_too_small_or_written_another_way_is_refused(
    run: Run, bob: User
) -> None:
    pkcs1 = (
        swarm_key()
        .public_key()
        .public_bytes(serialization.Encoding.DER, serialization.PublicFormat.PKCS1)
    )
    small = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505
    for der in (pkcs1, swarm_key_der(small)):
        error = refused(run, bob, swarm_public_key=base64.b64encode(der).decode())
        assert (error.code, "swarm_public_key" in error.detail) == (ErrorCode.BODY_INVALID, True)


def test_joining_waits_while_uses_of_challenges_cannot_be_written_down(
    run: Run, bob: User, settings: Settings
) -> None:
    away = f"redis://127.0.0.1:{port_free()}/0"
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": away}
    }
    assert refused(run, bob).code == ErrorCode.SERVICE_UNAVAILABLE
    del settings.CACHES


def test_a_proof_signed_by_another_key_than_it_names_is_refused(run: Run, bob: User) -> None:
    error = refused(run, bob, proof={"jwk": public_jwk(key_generate())})
    assert error.code == ErrorCode.UNKNOWN_KEY


def test_a_challenge_is_good_once_for_one_account_and_run(
    run: Run, alice: User, bob: User, charlie: User
) -> None:
    now = timezone.now()
    challenge = challenge_issue(run, bob, now).challenge
    join(run, bob, challenge=challenge)
    assert "before" in refused(run, bob, challenge=challenge).detail
    foreign = challenge_issue(run, charlie, now).challenge
    assert refused(run, bob, challenge=foreign).code == ErrorCode.CHALLENGE_INVALID
    elsewhere = challenge_issue(run_make(alice, "other"), bob, now).challenge
    assert refused(run, bob, challenge=elsewhere).code == ErrorCode.CHALLENGE_INVALID
    old = challenge_issue(run, bob, now - timedelta(minutes=6)).challenge
    assert refused(run, bob, challenge=old).code == ErrorCode.CHALLENGE_EXPIRED


def test_access_to_joining(run: Run, alice: User, bob: User, charlie: User, mallory: User) -> None:
    allowed = {}
    for number, user in enumerate((alice, bob, charlie, mallory)):
        try:
            join(run, user, number=number)
            allowed[user.username] = True
        except AppError as error:
            allowed[user.username] = error.code
    assert allowed == {"alice": True, "bob": True, "charlie": True, "mallory": ErrorCode.BANNED}


def test_a_banned_account_is_refused_also_with_a_credential_it_still_has(
    run: Run, bob: User
) -> None:
    now = timezone.now()
    credential = credential_of_token(token_make(bob), now)
    credential.user.banned_at = now
    request = join_request(challenge_issue(run, bob, now).challenge, key_generate(), swarm_key())
    with pytest.raises(AppError) as error:
        peer_join(credential, run, request, now)
    assert error.value.code == ErrorCode.BANNED


def test_archived_runs_are_over(alice: User, bob: User) -> None:
    run = run_make(alice, draft=draft_make())
    Run.objects.filter(pk=run.pk).update(state=RunState.ARCHIVED)
    run.refresh_from_db()
    assert refused(run, bob).code == ErrorCode.RUN_OVER


@pytest.mark.parametrize(
    ("version", "wanted", "is_enough"),
    [
        ("0.1.0", "0.1.0", True), ("0.1", "0.1.0", True), ("0.10.0", "0.9.9", True),
        ("v1.0", "0.9", True), ("0.1.0", "0.1.1", False), ("", "0.1", False),
        ("dev", "0.1", False), ("1", "", True),
    ],
)  # fmt: skip
def test_versions_are_compared_by_number(version: str, wanted: str, is_enough: bool) -> None:
    assert is_version_at_least(version, wanted) is is_enough
