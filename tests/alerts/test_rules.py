"""Rules judge facts and the time; an unusable view proves nothing."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from web.alerts.kinds import RULES, AlertKind, rule_values, rule_values_check
from web.alerts.rules import RUN_KINDS, Member, RunFacts, disk_judge, run_judge

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def facts(**fields: Any) -> RunFacts:
    """Return a run that goes well."""
    good = RunFacts(
        is_open=True,
        opened_at=ago(7200),
        heard_at=ago(2),
        num_peers=4,
        min_peers=2,
        epoch=20,
        last_epoch_at=ago(60),
        losses=tuple(4.0 - 0.05 * i for i in range(20)),
        checkpoint_epoch=18,
        checkpoint_every=10,
        members=tuple(member(20) for _ in range(4)),
        dialled={"0": True, "1": True},
        dialled_at=ago(20),
    )
    return replace(good, **fields)


def member(epoch: int = 20, *, seen: float | None = 5, joined: float = 3600) -> Member:
    return Member(ago(10), epoch, ago(joined), None if seen is None else ago(seen))


def judge(kind: AlertKind, **fields: Any) -> bool | None:
    verdict = run_judge(kind, facts(**fields), rule_values(kind), NOW)
    assert verdict.is_bad is None or verdict.sentence
    return verdict.is_bad


@pytest.mark.parametrize("kind", RUN_KINDS)
def test_a_run_that_goes_well_is_bad_by_no_rule(kind: AlertKind) -> None:
    assert judge(kind) is False


BAD: dict[AlertKind, dict[str, Any]] = {
    AlertKind.PEERS_BELOW_MINIMUM: {"num_peers": 1},
    AlertKind.NO_EPOCH: {"last_epoch_at": ago(16 * 60)},
    AlertKind.COORDINATOR_SILENT: {"heard_at": ago(61)},
    AlertKind.LOSS_SPIKE: {"losses": (4.0,) * 10 + (6.1,)},
    AlertKind.LOSS_NOT_FINITE: {"losses": (4.0, 4.0, None, float("nan"))},
    AlertKind.BOOTSTRAP_DOWN: {"dialled": {"0": False, "1": False}},
    AlertKind.CHECKPOINT_LATE: {"checkpoint_epoch": None, "epoch": 21},
    AlertKind.PARTITION_SUSPECTED: {"members": (member(), member(), member(seen=None))},
}


@pytest.mark.parametrize("kind", RUN_KINDS)
def test_what_is_wrong_is_bad_by_its_rule_alone(kind: AlertKind) -> None:
    others = {AlertKind.LOSS_SPIKE, AlertKind.LOSS_NOT_FINITE} - {kind}
    assert judge(kind, **BAD[kind]) is True
    for other in set(RUN_KINDS) - {kind} - others:
        assert judge(other, **BAD[kind]) is not True, other


@pytest.mark.parametrize("kind", RUN_KINDS)
def test_a_run_that_is_not_open_is_never_bad(kind: AlertKind) -> None:
    assert judge(kind, **BAD[kind], is_open=False) is False


@pytest.mark.parametrize("kind", RUN_KINDS)
def test_a_rule_that_is_switched_off_is_never_bad(kind: AlertKind) -> None:
    values = rule_values(kind, {"is_on": False})
    assert run_judge(kind, facts(**BAD[kind]), values, NOW).is_bad is False


@pytest.mark.parametrize("kind", RUN_KINDS)
def test_a_silent_coordinator_says_nothing_of_the_swarm(kind: AlertKind) -> None:
    fields = BAD[kind] | {"heard_at": ago(3600)}
    from_the_view = {
        AlertKind.PEERS_BELOW_MINIMUM,
        AlertKind.NO_EPOCH,
        AlertKind.CHECKPOINT_LATE,
        AlertKind.PARTITION_SUSPECTED,
    }
    assert judge(kind, **fields) is (None if kind in from_the_view else True)


def test_peers_in_another_epoch_are_a_partition_and_newcomers_are_not() -> None:
    kind = AlertKind.PARTITION_SUSPECTED
    assert judge(kind, members=(member(20), member(20), member(7))) is True
    assert judge(kind, members=(member(20), member(20), member(0, seen=None, joined=30))) is False
    assert judge(kind, members=(member(7),)) is False
    assert judge(kind, members=tuple(member(21) for _ in range(4))) is False


def test_without_history_a_spike_cannot_be_told() -> None:
    assert judge(AlertKind.LOSS_SPIKE, losses=(4.0, 4.0, 900.0)) is None
    assert judge(AlertKind.LOSS_SPIKE, losses=(-4.0,) * 10) is None
    assert judge(AlertKind.LOSS_SPIKE, losses=()) is None


def test_a_rollback_begins_the_wait_for_a_checkpoint_at_its_epoch() -> None:
    kind = AlertKind.CHECKPOINT_LATE
    assert judge(kind, checkpoint_epoch=None, lineage_epoch=15, epoch=30) is False
    assert judge(kind, checkpoint_epoch=None, lineage_epoch=5, epoch=30) is True


def test_time_in_a_pause_is_nobodys_silence() -> None:
    fields = {"heard_at": ago(7200), "last_epoch_at": ago(7200), "opened_at": ago(30)}
    assert judge(AlertKind.COORDINATOR_SILENT, **fields) is False
    assert judge(AlertKind.NO_EPOCH, **fields | {"heard_at": ago(1)}) is False


def test_a_full_disk_is_bad() -> None:
    values = rule_values(AlertKind.DISK_FILLING)
    assert disk_judge(91, 100, values).is_bad is True
    assert disk_judge(89, 100, values).is_bad is False
    assert disk_judge(0, 0, values).is_bad is None


def test_every_kind_has_words_and_defaults_that_are_allowed() -> None:
    assert set(RULES) == set(AlertKind)
    for kind, rule in RULES.items():
        assert rule.title
        assert rule.remedy.endswith(".")
        assert rule_values_check(kind, rule_values(kind)) == ""


def test_evidence_has_the_age_of_the_report() -> None:
    verdict = run_judge(AlertKind.NO_EPOCH, facts(), rule_values(AlertKind.NO_EPOCH), NOW)
    assert verdict.evidence == {"epoch": 20, "epoch_age_s": 60.0, "report_age_s": 2.0}
