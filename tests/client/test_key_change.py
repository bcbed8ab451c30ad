"""The real client against the real site, while the site changes its signing key."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.factories import token_make
from tests.factories_runs import run_make, swarm_make
from training.client.address import run_address_parse
from training.client.credentials import GivenToken
from training.client.errors import ClientError
from training.client.heartbeat import Heartbeat, HeartbeatEvents
from training.client.http import PlatformClient
from training.client.join import Admission, Joiner
from training.client.retry import Retry
from training.client.store import Home
from training.client.trust import trust_read
from training.protocol.api import PassRequest
from training.protocol.claims import Receipt, Revocations
from training.protocol.config import RunConfig
from training.protocol.envelope import peek_key_id, verify
from training.protocol.names import TYP_CONFIG, TYP_RECEIPT, TYP_REVOCATIONS
from training.protocol.states import CreditState
from web.accounts.models import User
from web.api.rows import RECEIPT_LIFETIME
from web.core.keys import jwks, site_key, site_keys_public, site_sign
from web.core.models import AuditEntry
from web.runs.models import RunConfigVersion

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def keys_folder(settings: Any, tmp_path: Path) -> None:
    settings.KEYS_DIR = tmp_path / "keys"


@pytest.fixture
def enter(
    keys_folder: None, live_server: Any, alice: User, bob: User, tmp_path: Path, identity: bytes
) -> Iterator[Callable[[str], Joiner]]:
    """Make machines of bob's that talk to a real site with a run."""
    swarm_make(run_make(alice), 0)
    address = run_address_parse(f"{live_server.url}/runs/demo/")
    made: list[PlatformClient] = []

    def make(name: str) -> Joiner:
        home = Home(tmp_path / name)
        home.root.mkdir()
        if not made:
            (home.root / "swarm.key").write_bytes(identity)
        client = PlatformClient(address, credentials=GivenToken(token_make(bob)), retry=Retry(0.0))
        made.append(client)
        return Joiner(client, home, device_name=name)

    yield make
    for client in made:
        client.close()


def heartbeat(joiner: Joiner, admission: Admission) -> Heartbeat:
    def nothing(*_: object) -> None:
        return None

    events = HeartbeatEvents(
        progress=PassRequest, command=nothing, config=nothing, refused=nothing, counted=nothing
    )
    return Heartbeat(joiner, admission, events)


def rotate() -> tuple[str, str]:
    old = site_key().thumbprint()
    call_command("rotate_site_key", verbosity=0)
    return old, site_key().thumbprint()


def trusted(joiner: Joiner) -> set[str]:
    trust = trust_read(joiner.home.site(joiner.client.address))
    assert trust is not None
    return {key.thumbprint() for key in trust.keys}


def test_a_trainer_goes_on_through_a_rotation_and_a_distrusted_key(
    enter: Callable[[str], Joiner],
) -> None:
    joiner = enter("laptop")
    admission = joiner.join()
    beats = heartbeat(joiner, admission)
    beats.beat()
    receipt = Receipt(
        run="demo", lineage=1, epoch=0, user="bob", device="x", samples=1,
        state=CreditState.CONFIRMED,
    )  # fmt: skip
    old_receipt = site_sign(receipt, TYP_RECEIPT, RECEIPT_LIFETIME)
    old_pass = beats.pass_token
    old, new = rotate()
    answer = beats.beat()
    assert peek_key_id(beats.pass_token) == peek_key_id(answer.revocations) == new
    assert trusted(joiner) == {old, new}
    trust = joiner.trust_update()
    for token, typ, model in (
        (old_receipt, TYP_RECEIPT, Receipt),
        (answer.revocations, TYP_REVOCATIONS, Revocations),
        (admission.config.token, TYP_CONFIG, RunConfig),
    ):
        assert verify(token, typ=typ, model=model, keys=trust.keys, now=timezone.now())  # type: ignore[type-var]
    assert joiner.pass_check(old_pass, trust, lineage=1), "passes of the old key stay good"
    assert peek_key_id(joiner.config_read().token) == old

    call_command("distrust_site_key", old, verbosity=0)
    beats.beat()
    assert peek_key_id(joiner.config_read().token) == new, "configs are signed again"
    assert trusted(joiner) == {new}
    with pytest.raises(ClientError) as error:
        joiner.pass_check(old_pass, joiner.trust_update(), lineage=1)
    assert error.value.code == "unknown_key"
    assert peek_key_id(enter("newcomer").join().config.token) == new


def test_whoever_knew_only_the_leaked_key_is_not_led_to_any_other(
    enter: Callable[[str], Joiner],
) -> None:
    away = enter("laptop")
    away.join()
    old, new = rotate()
    call_command("distrust_site_key", old, verbosity=0)
    assert [jwk.get("vouched_by", "") for jwk in jwks()["keys"]] == [""]
    with pytest.raises(ClientError) as error:
        away.join()
    assert error.value.code == "unknown_key"
    assert "keys.json" in error.value.remedy
    assert trusted(away) == {old}
    (away.home.site(away.client.address) / "keys.json").unlink()
    assert away.join()
    assert trusted(away) == {new}


def test_a_leaked_key_in_use_is_left_only_by_starting_over(
    enter: Callable[[str], Joiner],
) -> None:
    enter("laptop").join()
    first, second = rotate()
    with pytest.raises(CommandError, match="rotate it first"):
        call_command("distrust_site_key", second, verbosity=0)
    with pytest.raises(CommandError, match="no key of this site"):
        call_command("distrust_site_key", "nonsense", verbosity=0)
    RunConfigVersion.objects.update(
        jws=site_sign(
            RunConfig.model_validate(RunConfigVersion.objects.get().body),
            TYP_CONFIG,
            RECEIPT_LIFETIME,
        )
    )
    call_command("distrust_site_key", second, "--start-over", verbosity=0)
    newest = site_key().thumbprint()
    assert newest not in (first, second)
    assert [(k["kid"], k.get("vouched_by", "")) for k in jwks()["keys"]] == [
        (newest, ""),
        (first, ""),
    ]
    config = RunConfigVersion.objects.get()
    assert peek_key_id(config.jws) == newest
    assert verify(
        config.jws, typ=TYP_CONFIG, model=RunConfig, keys=site_keys_public(), now=timezone.now()
    )
    entry = AuditEntry.objects.get(code="site.key.distrusted")
    assert (entry.target, entry.data) == (second, {"signs_now": newest})
