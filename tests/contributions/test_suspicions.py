"""Suspicions: work waits until an organiser decides, and the decision is written down."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.factories import device_make, user_make
from tests.factories_ledger import Work, epoch_credit
from tests.factories_runs import run_make
from training.protocol.errors import ErrorCode
from training.protocol.states import CreditState
from web.accounts.models import Device, User
from web.contributions.grounds import (
    SUSPICION_REMEDIES,
    SUSPICION_TEXTS,
    Ground,
    SuspicionKind,
)
from web.contributions.ledger import entries_waiting
from web.contributions.models import ContributionTotal, EpochEvidence, LedgerEntry, Suspicion
from web.contributions.noticing import Found
from web.contributions.suspicions import (
    TRUSTED_FOR,
    held_devices,
    suspicion_decide,
    suspicions_raise,
    trusted_devices,
)
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.runs.models import Run

pytestmark = pytest.mark.django_db
CLOCK, FAST = SuspicionKind.CLOCK, SuspicionKind.IMPOSSIBLE_THROUGHPUT
ABOVE = SuspicionKind.CLAIM_ABOVE_WEIGHT


@pytest.fixture
def run(alice: User) -> Run:
    return run_make(alice)


@pytest.fixture
def device(bob: User) -> Device:
    return device_make(bob)[0]


def notice(run: Run, device: Device, kind: SuspicionKind, **evidence: Any) -> Suspicion | None:
    found = suspicions_raise(run, [Found(device.pk, kind, evidence)], timezone.now())
    return found[0] if found else None


def wait(run: Run, device: Device, epoch: int, ground: Ground, samples: int = 10) -> LedgerEntry:
    """Add a provisional entry and the evidence behind it."""
    now = timezone.now()
    (entry,) = epoch_credit(
        run, lineage=1, epoch=epoch, finished_at=now, seconds=20.0,
        work=[Work(device, 10)], state=CreditState.PROVISIONAL, ground=ground,
    )  # fmt: skip
    claims = {
        "QmStranger": {"device": 0, "user": 0},
        "Qm": {"device": device.pk, "user": device.user_id, "judged": samples, "ground": ground},
    }
    EpochEvidence.objects.create(
        run=run, lineage=1, epoch=epoch, finished_at=now, due_at=now, settled_at=now, claims=claims
    )
    return entry


def settled(entries: Sequence[LedgerEntry]) -> list[tuple[int, str, int, str, str]]:
    return [(e.epoch, e.state, e.samples, e.ground, e.reason) for e in entries]


def test_each_thing_is_noticed_once_logged_and_audited(
    run: Run, device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    twice = [Found(device.pk, CLOCK, {"epoch": n}) for n in range(2)]
    found = suspicions_raise(run, [*twice, Found(device.pk, FAST)], timezone.now())
    assert {row.kind: row.evidence for row in found} == {CLOCK: {"epoch": 0}, FAST: {}}
    assert Suspicion.objects.count() == 2
    assert notice(run, device, CLOCK) is None
    assert suspicions_raise(run, [], timezone.now()) == []
    assert f"run demo: device {device.public_id} is suspicious: clock" in caplog.text
    assert AuditEntry.objects.filter(code="suspicion.raised").count() == 2
    text = held_devices(run, [device.pk])[device.pk]
    assert text.startswith("waits for an organiser: ")


def test_a_cleared_device_is_believed_for_a_week(run: Run, device: Device, alice: User) -> None:
    row = notice(run, device, ABOVE)
    assert row is not None
    assert trusted_devices(run, [device.pk], timezone.now()) == set()
    suspicion_decide(alice, row, is_trusted=True, reason="a new GPU")
    assert held_devices(run, [device.pk]) == {}
    assert trusted_devices(run, [device.pk], timezone.now()) == {device.pk}
    assert notice(run, device, ABOVE) is None
    assert notice(run, device, CLOCK) is not None
    later = timezone.now() + TRUSTED_FOR
    assert trusted_devices(run, [device.pk], later) == set()
    assert len(suspicions_raise(run, [Found(device.pk, ABOVE)], later)) == 1


def test_clearing_confirms_what_waited_for_it_and_leaves_what_lacks_evidence(
    run: Run, device: Device, alice: User, bob: User
) -> None:
    row = notice(run, device, FAST)
    assert row is not None
    wait(run, device, 0, Ground.QUARANTINED, samples=9)
    wait(run, device, 1, Ground.UNSIGNED)
    wait(run, device_make(bob)[0], 2, Ground.QUARANTINED)
    entries = suspicion_decide(alice, row, is_trusted=True, reason="a new GPU ")
    assert settled(entries) == [(0, "confirmed", 9, "decided", "")]
    assert ContributionTotal.objects.get(user=bob).samples == 9
    assert entries_waiting(run).count() == 2
    row.refresh_from_db()
    assert (row.state, row.decided_by, row.reason) == ("cleared", alice, "a new GPU")
    audit = AuditEntry.objects.get(code="suspicion.cleared")
    assert (audit.actor_name, audit.target) == ("alice", f"demo/{device.public_id}")
    assert audit.data == {
        "kind": FAST, "reason": "a new GPU", "entries": 1, "samples": 9,
    }  # fmt: skip


def test_work_waits_on_while_another_suspicion_is_open(
    run: Run, device: Device, alice: User
) -> None:
    first, second = notice(run, device, FAST), notice(run, device, CLOCK)
    assert first is not None
    assert second is not None
    wait(run, device, 0, Ground.QUARANTINED)
    assert suspicion_decide(alice, first, is_trusted=True, reason="x") == []
    assert len(suspicion_decide(alice, second, is_trusted=True, reason="x")) == 1


@pytest.mark.parametrize("ground", [Ground.QUARANTINED, Ground.SUM_TOO_LARGE, Ground.ONE_WORD])
def test_upholding_rejects_what_waited_and_says_why(
    run: Run, device: Device, alice: User, bob: User, ground: Ground
) -> None:
    row = notice(run, device, FAST)
    assert row is not None
    wait(run, device, 0, ground)
    entries = suspicion_decide(alice, row, is_trusted=False, reason="made up")
    assert settled(entries) == [(0, "rejected", 10, "decided", "made up")]
    assert not ContributionTotal.objects.filter(user=bob, samples__gt=0).exists()
    assert AuditEntry.objects.filter(code="suspicion.upheld").exists()


@pytest.mark.parametrize(
    ("is_trusted", "expected"),
    [(True, (0, "confirmed", 10, "decided", "")), (False, (0, "confirmed", 4, "decided", "lied"))],
)
def test_of_two_words_the_organiser_chooses_one(
    run: Run, device: Device, alice: User, is_trusted: bool, expected: tuple[object, ...]
) -> None:
    row = notice(run, device, ABOVE)
    assert row is not None
    wait(run, device, 0, Ground.ONE_WORD)
    evidence = EpochEvidence.objects.get()
    evidence.claims["Qm"]["attested"] = 4
    evidence.save()
    assert settled(suspicion_decide(alice, row, is_trusted=is_trusted, reason="lied")) == [expected]


def test_an_entry_whose_evidence_was_forgotten_is_settled_by_its_own_ground(
    run: Run, device: Device, alice: User
) -> None:
    row = notice(run, device, FAST)
    assert row is not None
    entry = wait(run, device, 0, Ground.QUARANTINED)
    EpochEvidence.objects.all().delete()
    assert entry.ground == Ground.QUARANTINED
    assert len(suspicion_decide(alice, row, is_trusted=True, reason="x")) == 1


def test_who_may_decide_and_how(run: Run, device: Device, alice: User, bob: User) -> None:
    row = notice(run, device, FAST)
    assert row is not None
    for actor, reason, code in (
        (bob, "x", ErrorCode.FORBIDDEN),
        (user_make("dave", is_staff=True), "x", ErrorCode.FORBIDDEN),
        (alice, " ", ErrorCode.BODY_INVALID),
    ):
        with pytest.raises(AppError) as error:
            suspicion_decide(actor, row, is_trusted=True, reason=reason)
        assert error.value.code == code
    suspicion_decide(alice, row, is_trusted=True, reason="x")
    with pytest.raises(AppError, match="decided already"):
        suspicion_decide(alice, row, is_trusted=False, reason="x")
    assert timezone.now() - Suspicion.objects.get().decided_at < timedelta(minutes=1)  # type: ignore[operator]


def test_every_kind_is_explained_with_a_remedy() -> None:
    assert set(SUSPICION_TEXTS) == set(SUSPICION_REMEDIES) == set(SuspicionKind)
