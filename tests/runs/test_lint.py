"""What the check of a config finds. Bounds stand in docs/howto/publish-a-config.md."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.protocol.config import Artifact, RunConfig
from training.protocol.states import RunState
from web.runs.findings import Dialled, Finding, Fleet, Severity, Situation
from web.runs.lint import blockers, lint, unaccepted
from web.runs.lint_fleet import predicted_seconds
from web.runs.model_size import ModelSize

NOW = datetime(2026, 12, 2, 12, tzinfo=UTC)
FLEET = Fleet(
    num_trainers=4, samples_per_second=100.0, num_devices=4, memory_bytes=(4 * 2**30,) * 4
)
REACHED = (Dialled("/ip4/10.0.0.1/tcp/1/p2p/Qm", True, "1 ms"),)
SIZE = ModelSize(1_000_000, 2**30, 1e9)


def config_make(**changes: Any) -> RunConfig:
    """Return a config that nothing speaks against; parts may be changed."""
    body: dict[str, Any] = {
        "run": "demo",
        "title": "Demo",
        "version": 2,
        "task": {"name": "tiny"},
        "swarm": {"target_batch_size": 6000},
    }
    for name, value in changes.items():
        body[name] = body.get(name, {}) | value if isinstance(value, dict) else value
    return RunConfig.model_validate(body)


def situation_make(**changes: Any) -> Situation:
    """Return an open run with four trainers whose swarm is reached."""
    fine = Situation(
        now=NOW,
        state=RunState.OPEN,
        epoch=50,
        previous=config_make(version=1, checkpoint={"keep": 4}),
        fleet=FLEET,
        dialled=REACHED,
        tasks=frozenset({"tiny", "albert"}),
        size=SIZE,
        previous_size=SIZE,
    )
    return replace(fine, **changes)


def found(config: RunConfig, situation: Situation) -> dict[str, Finding]:
    """Return the findings by code."""
    return {finding.code: finding for finding in lint(config, situation)}


def test_a_config_that_suits_the_swarm_is_only_told_about() -> None:
    findings = lint(config_make(), situation_make())
    assert [f.severity for f in findings] == [Severity.INFO] * len(findings)
    assert {f.code for f in findings} == {"epoch_seconds", "memory", "bootstrap_reachable"}
    assert "about 1 min" in found(config_make(), situation_make())["epoch_seconds"].sentence


@pytest.mark.parametrize(
    ("changes", "code", "severity"),
    [
        ({"swarm": {"target_batch_size": 1500}}, "epoch_too_short", "warning"),
        ({"swarm": {"target_batch_size": 100}}, "epoch_too_short", "error"),
        ({"swarm": {"target_batch_size": 400_000}}, "epoch_too_long", "warning"),
        ({"checkpoint": {"every_epochs": 1000}}, "checkpoint_rare", "warning"),
        ({"swarm": {"min_peers": 5}}, "too_few_peers", "warning"),
        ({"swarm": {"request_timeout_seconds": 5.0}}, "request_timeout_long", "error"),
        ({"swarm": {"averaging_timeout_seconds": 1.0}}, "averaging_timeout_short", "warning"),
        ({"report": {"metrics_expire_seconds": 5.0}}, "reports_expire_early", "warning"),
        ({"swarm": {"admission": "open"}}, "admission_open", "warning"),
        ({"swarm": {"robust_averaging": "off"}}, "robust_off", "warning"),
        ({"task": {"name": "unheard-of"}}, "task_not_allowed", "error"),
        ({"optimizer": {"learning_rate": 0.01}}, "learning_rate_jump", "warning"),
        ({"optimizer": {"learning_rate": 0.5}}, "learning_rate_high", "warning"),
        ({"optimizer": {"warmup_epochs": 1000}}, "warmup_too_long", "error"),
        ({"max_epochs": 2000}, "learning_rate_ends", "warning"),
        ({"max_epochs": 50}, "already_past", "error"),
        ({"optimizer": {"weight_decay": 0.1}}, "new_lineage", "warning"),
        ({"checkpoint": {"keep": 4}}, "nothing_changed", "error"),
    ],
)
def test_what_does_not_suit_the_swarm_is_found(
    changes: dict[str, Any], code: str, severity: str
) -> None:
    finding = found(config_make(**changes), situation_make())[code]
    assert finding.severity == severity
    assert finding.sentence.endswith(".")
    assert finding.remedy.endswith(".")


@pytest.mark.parametrize(
    ("changes", "code", "severity"),
    [
        ({"lifetime_days": 2.0}, "short_lifetime", "warning"),
        ({"expires_at": NOW - timedelta(days=1)}, "expired", "warning"),
        ({"dialled": ()}, "bootstrap_unknown", "warning"),
        ({"dialled": (Dialled("x", False, "refused"),)}, "bootstrap_unreachable", "error"),
        ({"dialled": (*REACHED, Dialled("x", False, "refused"))},
         "bootstrap_partly_unreachable", "warning"),
        ({"dialled": (Dialled("x", False, "refused"),), "state": RunState.PAUSED},
         "bootstrap_unreachable", "warning"),
        ({"fleet": replace(FLEET, num_outdated=1)}, "trainers_too_old", "warning"),
        ({"fleet": Fleet()}, "no_prediction", "info"),
    ],
)  # fmt: skip
def test_what_is_wrong_around_the_config_is_found(
    changes: dict[str, Any], code: str, severity: str
) -> None:
    finding = found(config_make(), situation_make(**changes))[code]
    assert finding.severity == severity
    assert finding.sentence.endswith(".")


def test_the_share_of_devices_that_no_longer_fit_is_told() -> None:
    large = replace(SIZE, memory_bytes=8 * 2**30)
    fleet = replace(FLEET, memory_bytes=(2**29, 4 * 2**30, 4 * 2**30, 16 * 2**30))
    finding = found(config_make(), situation_make(size=large, fleet=fleet))["devices_do_not_fit"]
    assert "50 % of the active devices of this run would no longer fit" in finding.sentence
    assert "8.59 GB" in finding.sentence
    assert finding.severity == "warning"
    hopeless = situation_make(size=replace(SIZE, memory_bytes=2**40), fleet=fleet)
    assert found(config_make(), hopeless)["devices_do_not_fit"].severity == "error"


def test_what_is_not_known_of_memory_is_said() -> None:
    of_model = found(config_make(), situation_make(size=None))["memory_unknown"]
    assert "how large this task's model is" in of_model.sentence
    fleet = replace(FLEET, num_devices=6)
    some = found(config_make(), situation_make(fleet=fleet))
    assert some["memory_unknown"].sentence.startswith("2 of 6 active devices do not say")
    assert some["memory"].sentence.endswith("the other devices fit.")
    none = found(config_make(), situation_make(fleet=replace(fleet, memory_bytes=())))
    assert none["memory_unknown"].severity == "info"
    assert "memory" not in none
    assert "memory_unknown" not in found(config_make(), situation_make())


def test_without_machines_of_its_own_a_run_is_reckoned_with_the_sites_and_that_is_said() -> None:
    fleet = Fleet(is_of_run=False, num_site_trainers=9, site_samples_per_second=50.0)
    codes = found(config_make(), situation_make(fleet=fleet))
    assert "With all 9 trainers of the site's public runs" in codes["epoch_seconds_site"].sentence
    assert "about 2 min" in codes["epoch_seconds_site"].sentence
    assert "no_prediction" not in codes
    own = replace(fleet, samples_per_second=100.0, num_trainers=4)
    codes = found(config_make(), situation_make(fleet=own))
    assert "today's swarm (4 trainers)" in codes["epoch_seconds"].sentence
    assert "epoch_seconds_site" not in codes


def test_a_larger_model_is_reckoned_to_be_slower() -> None:
    same = situation_make()
    twice = situation_make(size=replace(SIZE, work=2e9))
    assert predicted_seconds(config_make(), same) == pytest.approx(60)
    assert predicted_seconds(config_make(), twice) == pytest.approx(120)


def test_an_albert_without_its_tokenizer_or_with_odd_sizes_is_stopped() -> None:
    params = {"hidden_size": 100, "heads": 7, "layers": 5, "groups": 2, "source": "text-files"}
    config = config_make(task={"name": "albert", "params": params})
    codes = [f.code for f in blockers(lint(config, situation_make()))]
    assert sorted(codes) == ["file_missing", *["params_do_not_fit"] * 3]
    stored = Artifact(name="tokenizer.json", sha256="0" * 64, size=6)
    fine = config_make(task={"name": "albert"}, artifacts=(stored,))
    assert not blockers(lint(fine, situation_make()))


def test_a_first_version_is_compared_with_nothing() -> None:
    situation = situation_make(previous=None, previous_size=None, state=RunState.DRAFT, dialled=())
    assert set(found(config_make(version=1), situation)) == {"epoch_seconds", "memory"}


configs = st.builds(
    config_make,
    swarm=st.fixed_dictionaries(
        {"target_batch_size": st.integers(1, 10**12), "min_peers": st.integers(1, 5000),
         "matchmaking_seconds": st.floats(0.01, 86_400)}),
    optimizer=st.fixed_dictionaries(
        {"learning_rate": st.floats(1e-9, 1e6), "total_epochs": st.integers(1, 2**31 - 1),
         "warmup_epochs": st.integers(0, 2**31 - 1)}),
    max_epochs=st.none() | st.integers(1, 2**31 - 1),
)  # fmt: skip
sizes = st.none() | st.builds(
    ModelSize, st.integers(1, 10**12), st.integers(1, 10**15), st.floats(1, 1e30)
)
fleets = st.builds(
    Fleet,
    num_trainers=st.integers(0, 5000),
    samples_per_second=st.floats(0, 1e12),
    num_devices=st.integers(1, 5000),
    memory_bytes=st.lists(st.integers(1, 2**45), max_size=20).map(tuple),
    num_outdated=st.just(0) | st.just(1),
)


@given(configs, st.none() | configs, fleets, sizes, sizes, st.sampled_from(RunState))
def test_whatever_the_swarm_every_finding_is_a_sentence_and_the_worst_come_first(
    config: RunConfig,
    previous: RunConfig | None,
    fleet: Fleet,
    size: ModelSize | None,
    previous_size: ModelSize | None,
    state: RunState,
) -> None:
    situation = situation_make(
        previous=previous, fleet=fleet, size=size, previous_size=previous_size, state=state
    )
    findings = lint(config, situation)
    order = [list(Severity).index(finding.severity) for finding in findings]
    assert order == sorted(order)
    for finding in findings:
        assert finding.sentence[:1].isupper() or finding.sentence[:1].isdigit()
        assert finding.sentence.endswith(".")
        assert finding.remedy.endswith(".") or finding.severity is Severity.INFO
    warned = [f for f in findings if f.severity is Severity.WARNING]
    assert unaccepted(findings, []) == warned
    assert not unaccepted(findings, [f.code for f in warned])
    assert lint(config, situation) == findings, "a pure function"


@given(configs, fleets, st.floats(1.01, 100))
def test_more_throughput_never_makes_an_epoch_longer(
    config: RunConfig, fleet: Fleet, factor: float
) -> None:
    faster = replace(fleet, samples_per_second=fleet.samples_per_second * factor)
    slow = predicted_seconds(config, situation_make(fleet=fleet))
    fast = predicted_seconds(config, situation_make(fleet=faster))
    assert (slow is None) == (fast is None)
    assert slow is None or fast is None or fast <= slow


@given(sizes.filter(bool), fleets, st.integers(0, 2**40))
def test_more_memory_never_makes_more_devices_unfit(
    size: ModelSize, fleet: Fleet, extra: int
) -> None:
    order = {"memory": 0, "warning": 1, "error": 2}

    def badness(some: Fleet) -> int:
        findings = found(config_make(), situation_make(size=size, previous_size=None, fleet=some))
        bad = findings.get("devices_do_not_fit")
        return order[str(bad.severity)] if bad else 0

    larger = replace(fleet, memory_bytes=tuple(m + extra for m in fleet.memory_bytes))
    assert badness(larger) <= badness(fleet)


@pytest.mark.parametrize(
    ("version", "code"),
    [
        ("0.1.0", None), ("v0.1", None), ("0.0.9", None),
        ("9.0.0", "trainer_version_unknown"), ("0.1.0.1", "trainer_version_unknown"),
        ("banana", "trainer_version_unreadable"), ("1.x", "trainer_version_unreadable"),
    ],
)  # fmt: skip
def test_a_version_that_no_trainer_has_or_that_is_none_is_an_error(
    version: str, code: str | None
) -> None:
    found = lint(config_make(min_trainer_version=version), situation_make())
    codes = {f.code for f in found if f.code.startswith("trainer_version")}
    assert codes == ({code} if code else set())
