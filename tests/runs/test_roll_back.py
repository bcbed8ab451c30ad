"""Going back to a saved state: a new lineage that begins there."""

import hashlib
from typing import Any

import pytest
from django.utils import timezone

from tests.factories_runs import config_publish, draft_make, peer_joined, run_make
from training.protocol.config import RunConfig
from training.protocol.envelope import verify
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_generate
from training.protocol.names import TYP_CONFIG
from web.accounts.models import User
from web.core.errors import AppError
from web.core.keys import site_keys_public
from web.core.models import AuditEntry
from web.runs.models import Checkpoint, Run
from web.runs.selectors import checkpoint_before, lineage_path
from web.runs.services import run_rewind, run_transition

pytestmark = pytest.mark.django_db


def saved(run: Run, epoch: int, lineage: int = 1, **fields: Any) -> Checkpoint:
    return Checkpoint.objects.create(
        **{
            "run": run,
            "lineage": lineage,
            "epoch": epoch,
            "config_version": 1,
            "files": [],
            "manifest": f"manifest of {lineage}-{epoch}",
            "saved_at": timezone.now(),
            **fields,
        }
    )


@pytest.fixture
def run(alice: User) -> Run:
    run = run_make(alice)
    for epoch in (10, 20, 30):
        saved(run, epoch)
    return run


def test_the_new_config_begins_where_the_state_was_saved(run: Run, alice: User) -> None:
    chosen = Checkpoint.objects.get(epoch=10)
    version = run_rewind(alice, run, chosen)
    config = verify(
        version.jws, typ=TYP_CONFIG, model=RunConfig, keys=site_keys_public(), now=timezone.now()
    ).body
    assert (config.version, config.lineage) == (2, 2)
    assert config.start is not None
    assert (config.start.lineage, config.start.epoch) == (1, 10)
    assert config.start.manifest_sha256 == hashlib.sha256(b"manifest of 1-10").hexdigest()
    before = run.configs.get(version=1)
    assert config.previous_sha256 == before.sha256
    assert config.swarm.target_batch_size == before.body["swarm"]["target_batch_size"]
    assert list(run.checkpoints.values_list("epoch", flat=True)) == [10]
    entry = AuditEntry.objects.get(code="run.rolled.back")
    assert (entry.actor_name, entry.data) == ("alice", {"epoch": 10, "lineage": 2})
    assert run.events.filter(kind="run.rolled_back").exists()


def test_later_versions_keep_the_beginning_and_another_model_has_none(
    run: Run, alice: User
) -> None:
    run_rewind(alice, run, Checkpoint.objects.get(epoch=10))
    third = config_publish(run, swarm={"target_batch_size": 64, "min_peers": 1})
    assert (third.lineage, third.body["start"]["epoch"]) == (2, 10)
    draft = draft_make(start={"lineage": 1, "epoch": 1, "manifest_sha256": "a" * 64})
    fourth = config_publish(run, **draft)
    assert fourth.body["start"]["epoch"] == 10, "a draft does not choose where to begin"
    other = config_publish(run, task={"name": "tiny", "params": {"hidden": 16}})
    assert (other.lineage, other.body["start"]) == (3, None)


def test_the_state_to_go_back_to_holds_nothing_of_the_harm(run: Run) -> None:
    cases = {9: None, 10: 10, 19: 10, 20: 20, 29: 20, 1000: 30}
    for epoch, expected in cases.items():
        found = checkpoint_before(run, epoch)
        assert (found.epoch if found else None) == expected, epoch


def test_going_back_twice_follows_the_models_own_past(run: Run, alice: User) -> None:
    run_rewind(alice, run, Checkpoint.objects.get(epoch=20))
    assert lineage_path(run) == [(2, None), (1, 20)]
    saved(run, 26, lineage=2, config_version=2)
    saved(run, 24, lineage=1)  # of the abandoned branch, announced late
    assert checkpoint_before(run, 29) == Checkpoint.objects.get(lineage=2, epoch=26)
    assert checkpoint_before(run, 25) == Checkpoint.objects.get(lineage=1, epoch=20)
    run_rewind(alice, run, Checkpoint.objects.get(lineage=1, epoch=10))
    assert lineage_path(run) == [(3, None), (1, 10)]
    assert list(run.checkpoints.values_list("lineage", "epoch")) == [(1, 10)]


def test_who_may_roll_back_and_when(
    run: Run, alice: User, bob: User, charlie: User, mallory: User
) -> None:
    chosen = Checkpoint.objects.get(epoch=10)
    for user in (bob, charlie, mallory):
        with pytest.raises(AppError) as error:
            run_rewind(user, run, chosen)
        assert error.value.code == ErrorCode.FORBIDDEN
    run_transition(alice, run, "finish")
    with pytest.raises(AppError) as error:
        run_rewind(alice, run, chosen)
    assert error.value.code == ErrorCode.RUN_OVER


def test_the_state_of_another_model_is_refused(run: Run, alice: User) -> None:
    config_publish(run, task={"name": "tiny", "params": {"hidden": 16}})
    with pytest.raises(AppError) as error:
        run_rewind(alice, run, Checkpoint.objects.get(epoch=10))
    assert "another model" in error.value.detail
    assert checkpoint_before(run, 1000) is None


def test_a_newcomer_is_told_the_epoch_that_its_swarm_has(run: Run, alice: User) -> None:
    run_rewind(alice, run, Checkpoint.objects.get(epoch=20))
    peer, answer = peer_joined(run, alice, key_generate())
    assert (answer.min_epoch, peer.lineage) == (20, 2)
