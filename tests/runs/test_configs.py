"""Configs: checked, signed, chained."""

import hashlib
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.factories_runs import config_publish, draft_make, run_make
from training.protocol.config import RunConfig
from training.protocol.envelope import verify
from training.protocol.errors import ErrorCode
from training.protocol.names import TYP_CONFIG
from training.protocol.states import RunState
from web.accounts.models import User
from web.core.errors import AppError
from web.core.keys import site_keys_public
from web.core.models import AuditEntry
from web.monitoring.models import RunEvent
from web.runs.config_diff import config_diff
from web.runs.models import Run, RunConfigVersion
from web.runs.selectors import config_current, config_newest, config_previous
from web.runs.services import artifact_store, config_check, configs_resign, run_config_publish
from web.runs.tasks import configs_resign_task

pytestmark = pytest.mark.django_db


def test_versions_are_signed_and_name_the_hash_of_the_one_before(alice: User) -> None:
    run = run_make(alice)
    first = config_current(run)
    second = config_publish(run, max_epochs=9)
    now = timezone.now()
    config = verify(
        second.jws, typ=TYP_CONFIG, model=RunConfig, keys=site_keys_public(), now=now
    ).body

    assert first.sha256 == hashlib.sha256(first.jws.encode()).hexdigest()
    assert (config.version, config.previous_sha256) == (2, first.sha256)
    assert (config.run, config.title, config.max_epochs) == ("demo", "The demo run", 9)
    assert config.model_dump(mode="json") == second.body
    assert config_previous(second) == first
    assert config_newest(run) == second
    entry = AuditEntry.objects.filter(code="run.config.published").first()
    assert entry is not None
    assert entry.data == {"version": 2, "lineage": 1, "changed": ["max_epochs"]}
    assert RunEvent.objects.first().text == "alice published config version 2"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "lineage"),
    [
        ({"max_epochs": 9}, 1),
        ({"swarm": {"target_batch_size": 7}}, 1),
        ({"title": "Another"}, 1),
        ({"task": {"name": "tiny", "params": {"hidden": 9}}}, 2),
        ({"optimizer": {"learning_rate": 0.5}}, 2),
        ({"optimizer": {}}, 1),
    ],
)
def test_what_peers_cannot_average_over_starts_a_lineage(
    alice: User, changes: dict[str, Any], lineage: int
) -> None:
    version = config_publish(run_make(alice), **changes)
    assert (version.version, version.lineage, version.body["lineage"]) == (2, lineage, lineage)


def test_other_artifacts_start_a_lineage_and_have_to_be_stored(alice: User) -> None:
    run = run_make(alice)
    stored = artifact_store(b"pieces", "tokenizer.json")
    entry = {"name": stored.name, "sha256": stored.sha256, "size": stored.size}
    assert config_publish(run, artifacts=[entry]).lineage == 2
    for wrong, text in (
        ({**entry, "sha256": "0" * 64}, "artifacts.0.sha256: this file is not stored"),
        ({**entry, "size": 1}, "artifacts.0.size: the stored file has 6 bytes"),
    ):
        with pytest.raises(AppError, match=text):
            config_publish(run, artifacts=[wrong])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"optimizer": {"learning_rate": -1}}, "optimizer.learning_rate: Input should be greater"),
        ({"task": None}, "task: "),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"swarm": {"target_batch_size": "many"}}, "swarm.target_batch_size: "),
    ],
)
def test_a_draft_that_does_not_fit_names_the_field(
    alice: User, changes: dict[str, Any], text: str
) -> None:
    run = run_make(alice)
    with pytest.raises(AppError, match=text) as error:
        config_check(run, draft_make(**changes))
    assert error.value.code == ErrorCode.BODY_INVALID
    assert config_newest(run).version == 1  # type: ignore[union-attr]


def test_many_problems_are_summed_up(alice: User) -> None:
    with pytest.raises(AppError, match="and 3 more"):
        config_check(run_make(alice), draft_make(**{f"x{i}": 1 for i in range(8)}))


def test_what_the_site_sets_is_taken_from_no_draft(alice: User) -> None:
    body = config_newest(run_make(alice)).body  # type: ignore[union-attr]
    draft = {**body, "version": 77, "lineage": 9, "run": "other", "previous_sha256": "0" * 64}
    version = run_config_publish(alice, Run.objects.get(), draft)
    assert (version.version, version.lineage, version.body["run"]) == (2, 1, "demo")


def test_who_may_publish(alice: User, bob: User) -> None:
    run = run_make(alice)
    with pytest.raises(AppError) as error:
        run_config_publish(bob, run, draft_make())
    assert error.value.code == ErrorCode.FORBIDDEN
    Run.objects.update(state=RunState.FINISHED)
    with pytest.raises(AppError) as error:
        run_config_publish(alice, run, draft_make())
    assert error.value.code == ErrorCode.RUN_OVER


def test_the_newest_config_is_signed_again_before_it_expires(alice: User) -> None:
    run = run_make(alice)
    config_publish(run, max_epochs=5)
    old = {v.version: (v.jws, v.sha256) for v in RunConfigVersion.objects.all()}
    now = timezone.now()
    assert configs_resign(now) == 0
    configs_resign_task()
    assert configs_resign(now + timedelta(days=61)) == 1
    first, second = RunConfigVersion.objects.order_by("version")
    assert (first.jws, first.sha256) == old[1]
    assert second.jws != old[2][0]
    assert second.sha256 == old[2][1]
    assert second.expires_at > now + timedelta(days=140)
    assert config_publish(run).body["previous_sha256"] == old[2][1]
    Run.objects.update(state=RunState.ARCHIVED)
    assert configs_resign(now + timedelta(days=999)) == 0


def test_a_difference_is_a_list_of_dotted_paths() -> None:
    old = {"a": {"b": 1, "c": [1]}, "version": 1, "gone": 2}
    new = {"a": {"b": 2, "c": [1]}, "version": 2, "new": {"x": 1}}
    assert config_diff(old, new) == [
        {"path": "a.b", "old": 1, "new": 2},
        {"path": "gone", "old": 2, "new": None},
        {"path": "new", "old": None, "new": {"x": 1}},
    ]
    assert config_diff(old, old) == []
