"""A machine gets a new key and keeps its history; the old one is never taken again."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import device_make, token_make
from tests.factories_runs import (
    metrics_make,
    peer_joined,
    run_make,
    signed,
    snapshot_take,
    swarm_make,
)
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_generate, public_jwk
from training.protocol.metrics import PeerObservation
from training.protocol.names import TYP_METRICS
from web.accounts.credentials import Credential, credential_of_token
from web.accounts.devices import REKEY_WITHIN
from web.accounts.models import Device, RetiredDeviceKey, User
from web.accounts.services import device_bind, device_key_replace
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.monitoring.selectors import live_state
from web.monitoring.services.revocations import revocations_current

pytestmark = pytest.mark.django_db


def fresh(user: User) -> Credential:
    return credential_of_token(token_make(user), timezone.now())


def bind(user: User, jwk: dict[str, str], name: str = "laptop") -> Device:
    return device_bind(
        user,
        jwk=jwk,
        name=name,
        hardware={},
        trainer_version="0.1.0",
        credential=fresh(user),
        now=timezone.now(),
    )


def test_the_next_new_key_becomes_the_machines_and_the_old_one_is_refused(bob: User) -> None:
    device, old = device_make(bob)
    device_key_replace(bob, device)
    with pytest.raises(AppError) as error:
        bind(bob, public_jwk(old))
    assert error.value.code == ErrorCode.DEVICE_REVOKED
    new = public_jwk(key_generate())
    again = bind(bob, new)
    assert (again.pk, again.kid, again.is_revoked) == (device.pk, new["kid"], False)
    assert RetiredDeviceKey.objects.get().kid == old.thumbprint()
    with pytest.raises(AppError) as error:
        bind(bob, public_jwk(old))
    assert error.value.code == ErrorCode.DEVICE_REVOKED
    assert AuditEntry.objects.get(code="device.key.replaced").data == {
        "old": old.thumbprint(), "new": new["kid"],
    }  # fmt: skip


def test_only_its_owner_and_only_a_login_made_later_bring_it_back(bob: User, charlie: User) -> None:
    device, _ = device_make(bob)
    before = fresh(bob)
    device_key_replace(bob, device)
    assert bind(charlie, public_jwk(key_generate())).pk != device.pk
    with pytest.raises(AppError) as error:
        device_bind(
            bob, jwk=public_jwk(key_generate()), name="laptop", hardware={},
            trainer_version="", credential=before, now=timezone.now(),
        )  # fmt: skip
    assert error.value.code == ErrorCode.DEVICE_REVOKED
    device.refresh_from_db()
    assert device.is_revoked
    assert not RetiredDeviceKey.objects.exists()


def test_of_several_that_wait_the_one_of_that_name_is_meant(bob: User) -> None:
    laptop, desk = device_make(bob, "laptop")[0], device_make(bob, "desk")[0]
    for device in (laptop, desk):
        device_key_replace(bob, device)
    other = bind(bob, public_jwk(key_generate()), "tower")
    assert other.pk not in (laptop.pk, desk.pk)
    assert bind(bob, public_jwk(key_generate()), "desk").pk == desk.pk
    assert bind(bob, public_jwk(key_generate()), "whatever").pk == laptop.pk


def test_after_a_day_a_new_key_is_a_new_machine(bob: User) -> None:
    device, old = device_make(bob)
    device_key_replace(bob, device)
    Device.objects.update(rekey_at=timezone.now() - REKEY_WITHIN)
    assert bind(bob, public_jwk(key_generate())).pk != device.pk
    with pytest.raises(AppError):
        bind(bob, public_jwk(old))


def test_peer_history_and_revocation_list_follow_the_new_key(alice: User, bob: User) -> None:
    run = run_make(alice)
    swarm = swarm_make(run, 0)
    old, new = key_generate(), key_generate()
    peer, _ = peer_joined(run, bob, old, 0)
    device_key_replace(bob, peer.device)
    assert revocations_current(run).peer_ids == [peer.peer_id]
    again, _ = peer_joined(run, bob, new, 1)
    assert (again.pk, again.device_id) == (peer.pk, peer.device_id)
    assert revocations_current(run).peer_ids == [peer.peer_id], "the stolen identity stays on it"
    now = timezone.now() + timedelta(seconds=1)
    for key, verified in ((old, False), (new, True)):
        now += timedelta(seconds=2)
        volunteer = type("V", (), {"peer": again})
        jws = signed(metrics_make(volunteer, now), TYP_METRICS, key, now)  # type: ignore[arg-type]
        seen = PeerObservation(key_thumbprint=again.key_thumbprint, seen_at=now, jws=jws)
        snapshot_take(swarm, now, peers=(seen,))
        assert live_state(run)["peers"][again.public_id]["verified"] is verified


def test_the_page_asks_first_and_says_what_to_do_on_the_machine(
    client: Client, bob: User, charlie: User
) -> None:
    device, _ = device_make(bob)
    path = f"/devices/{device.public_id}/key/"
    assert client.get(path).status_code == 302
    client.force_login(charlie)
    assert client.get(path).status_code == client.post(path).status_code == 404
    client.force_login(bob)
    assert "beeyard logout --new-key" in client.get(path).text
    device.refresh_from_db()
    assert device.rekey_at is None, "asking changes nothing"
    answer = client.post(path, follow=True)
    assert "Waits for its new key" in answer.text
    assert "beeyard join" in answer.text
    device.refresh_from_db()
    assert device.is_revoked
