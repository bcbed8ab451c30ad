"""From reports and signed statements to the ledger, each once."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.factories import device_make, user_make
from tests.factories_runs import run_make
from training.protocol.metrics import EpochReport, EpochSamples, EpochWork, PeerMetrics, RoundSeen
from web.accounts.devices import device_revoke
from web.accounts.models import Device, User
from web.contributions.claims import Member, Statement
from web.contributions.grounds import SuspicionKind
from web.contributions.models import ContributionTotal, EpochEvidence, LedgerEntry, Suspicion
from web.contributions.settlement import (
    EVIDENCE_KEPT,
    EVIDENCE_PATIENCE,
    Finished,
    epochs_settle,
    evidence_prune,
    evidence_settle,
)
from web.contributions.tasks import evidence_settle_task
from web.core.models import AuditEntry
from web.runs.models import Run
from web.runs.services import run_bar_add

pytestmark = pytest.mark.django_db


@dataclass
class World:
    """A run with one machine of each of three people, as the counting meets it."""

    run: Run
    devices: dict[str, Device]
    now: datetime

    def member(self, name: str) -> Member:
        device = self.devices[name]
        return Member(device.pk, device.user_id, f"Qm{name}", self.now)

    def report(self, epoch: int, counted: Mapping[str, int], **fields: Any) -> Finished:
        rows = tuple(
            EpochWork(key_thumbprint=key_of(name), samples=n, recorded=n)
            for name, n in counted.items()
        )
        given = {"work": rows, "accumulated": sum(counted.values())} | fields
        return Finished(EpochReport(epoch=epoch, finished_at=self.now, **given), 20.0)

    def statement(
        self,
        name: str,
        epoch: int,
        work: Mapping[str, int],
        *,
        at: int | None = None,
        **fields: Any,
    ) -> Statement:
        """Return what a trainer signs that averaged with everybody in ``work``."""
        weights: dict[str, int | None] = {f"Qm{n}": s for n, s in work.items() if n != name}
        given: dict[str, Any] = {
            "recent": (EpochSamples(epoch=epoch, samples=work[name]),),
            "rounds": (RoundSeen(epoch=epoch, group_size=len(work), weights=weights),),
            "epoch": epoch + 1 if at is None else at, "samples_total": 10_000, "loss": 2.0,
        }  # fmt: skip
        metrics = PeerMetrics(
            run=self.run.slug, lineage=1, peer_id=f"Qm{name}", config_version=1,
            samples_accumulated=0, samples_per_second=5.0, taken_at=self.now, **(given | fields),
        )  # fmt: skip
        return Statement(self.member(name), metrics)

    def settle(self, *, lineage: int = 1, later: timedelta = timedelta(0), **given: Any) -> None:
        members = {key_of(name): self.member(name) for name in self.devices}
        epochs_settle(self.run, lineage, members=members, now=self.now + later, **given)

    def round(self, epoch: int, work: Mapping[str, int], **fields: Any) -> None:
        """Settle an epoch in which everybody says what happened."""
        statements = [self.statement(name, epoch, work, **fields) for name in work]
        self.settle(finished=[self.report(epoch, work)], statements=statements)

    def entries(self, name: str) -> list[tuple[int, int, str, str]]:
        rows = LedgerEntry.objects.filter(device=self.devices[name]).order_by("pk")
        return list(rows.values_list("epoch", "samples", "state", "ground"))

    def total(self, name: str) -> int:
        row = ContributionTotal.objects.filter(user=self.devices[name].user).first()
        return row.samples if row else 0


def key_of(name: str) -> str:
    return name.encode().hex().ljust(64, "0")


@pytest.fixture
def world(alice: User, bob: User, charlie: User) -> World:
    people = {"bob": bob, "charlie": charlie, "dora": user_make("dora")}
    devices = {name: device_make(user)[0] for name, user in people.items()}
    return World(run_make(alice), devices, timezone.now())


WORK = {"bob": 50, "charlie": 30}


def test_an_epoch_is_settled_at_once_when_everybody_has_told(world: World) -> None:
    world.round(0, WORK)
    assert world.entries("bob") == [(0, 50, "confirmed", "")]
    row = EpochEvidence.objects.get()
    assert row.settled_at == world.now
    assert (row.claims["Qmbob"]["judged"], row.claims["Qmbob"]["witnesses"]) == (50, 1)
    assert "weights" not in row.claims["Qmbob"], "what is settled is kept short"
    world.settle(statements=[world.statement("bob", 0, {"bob": 500})])
    assert world.entries("bob") == [(0, 50, "confirmed", "")]
    assert LedgerEntry.objects.get(device=world.devices["bob"]).seconds == 20.0


def test_what_waits_becomes_a_new_entry_when_the_evidence_comes(world: World) -> None:
    world.settle(finished=[world.report(0, WORK)], statements=[world.statement("bob", 0, WORK)])
    assert world.entries("bob") == [(0, 50, "provisional", "awaiting_witnesses")]
    assert world.entries("charlie") == [(0, 30, "provisional", "unsigned")]
    assert (world.total("bob"), world.total("charlie")) == (0, 0)
    world.settle(statements=[world.statement("charlie", 0, WORK)])
    assert world.entries("bob")[1:] == [(0, 50, "confirmed", "")]
    assert world.entries("charlie")[1:] == [(0, 30, "confirmed", "")]
    assert (world.total("bob"), world.total("charlie")) == (50, 30)
    first, second = LedgerEntry.objects.filter(device=world.devices["bob"]).order_by("pk")
    assert second.settles == first
    for _ in range(2):
        world.settle(later=EVIDENCE_PATIENCE)
    assert LedgerEntry.objects.count() == 4


def test_evidence_that_never_comes_is_not_waited_for_without_end(world: World) -> None:
    world.settle(finished=[world.report(0, WORK)], statements=[world.statement("bob", 0, WORK)])
    assert evidence_settle(world.now + EVIDENCE_PATIENCE - timedelta(seconds=1)) == 0
    assert evidence_settle(world.now + EVIDENCE_PATIENCE) == 1
    assert world.entries("bob")[-1] == (0, 50, "confirmed", "unwitnessed")
    assert world.entries("charlie")[-1] == (0, 30, "confirmed", ""), "bob read its parts"
    assert evidence_settle(world.now + 2 * EVIDENCE_PATIENCE) == 0
    evidence_settle_task()


def test_the_report_may_come_after_the_site_or_the_coordinator_was_away(world: World) -> None:
    world.now -= timedelta(hours=1)
    late = world.report(0, WORK)
    world.now += timedelta(hours=1)
    world.settle(finished=[late])
    world.settle(later=EVIDENCE_PATIENCE)
    assert world.entries("bob")[-1] == (0, 50, "confirmed", "recorded")
    assert (world.total("bob"), world.total("charlie")) == (50, 30)


def test_a_peer_that_the_report_forgot_is_counted_by_its_statement(world: World) -> None:
    """Its claim is taken up while the epoch is open; bob names a member that has not come."""
    world.settle(
        finished=[world.report(0, {"bob": 50}, accumulated=None)],
        statements=[world.statement("bob", 0, WORK)],
    )
    assert EpochEvidence.objects.get().settled_at is None
    world.settle(statements=[world.statement("charlie", 0, WORK)])
    assert world.entries("charlie") == [(0, 30, "confirmed", "")]
    assert EpochEvidence.objects.get().settled_at


def test_statements_that_say_nothing_of_the_epoch_change_nothing(world: World) -> None:
    world.settle(finished=[world.report(0, WORK)])
    before = EpochEvidence.objects.get().claims
    for statement in (
        world.statement("dora", 0, {"dora": 0}),
        world.statement("bob", 0, {"bob": 50}, recent=(), rounds=(), at=0),
        world.statement(
            "bob", 0, {"bob": 50}, rounds=(), at=90,
            recent=tuple(EpochSamples(epoch=50 + n, samples=1) for n in range(32)),
        ),
    ):  # fmt: skip
        world.settle(statements=[statement])
        assert EpochEvidence.objects.get().claims == before
    assert world.entries("dora") == []


def test_of_two_statements_the_smaller_counts_and_naming_outlives_a_restart(world: World) -> None:
    world.settle(finished=[world.report(0, {**WORK, "dora": 10})])
    world.settle(statements=[world.statement("bob", 0, {"bob": 50})])
    world.settle(statements=[world.statement("bob", 0, {"bob": 45})])
    world.settle(statements=[world.statement("bob", 0, {"bob": 0}, recent=(), rounds=())])
    world.settle(later=EVIDENCE_PATIENCE)
    assert world.entries("bob")[-1][1:3] == (45, "confirmed")


def test_a_device_with_new_keys_claims_an_epoch_once(world: World) -> None:
    world.settle(finished=[world.report(0, WORK)])
    renamed = world.statement("bob", 0, {"bob": 50})
    member = Member(world.devices["bob"].pk, world.devices["bob"].user_id, "QmNew", world.now)
    world.settle(statements=[Statement(member, renamed.metrics)])
    assert set(EpochEvidence.objects.get().claims) == {"Qmbob", "Qmcharlie"}


def test_thrown_away_samples_are_written_down_as_not_counted(world: World) -> None:
    row = EpochWork(key_thumbprint=key_of("dora"), samples=70, recorded=70)
    world.settle(
        finished=[world.report(0, WORK, discarded=(row,), accumulated=150)],
        statements=[world.statement(name, 0, WORK) for name in WORK],
    )
    world.settle(statements=[world.statement("dora", 0, {"dora": 0}, recent=(), rounds=())])
    assert world.entries("dora")[-1] == (0, 70, "rejected", "discarded")
    assert world.total("dora") == 0


def test_work_of_the_barred_is_rejected_and_strangers_keys_earn_nothing(world: World) -> None:
    User.objects.filter(username="bob").update(banned_at=timezone.now())
    stranger = EpochWork(key_thumbprint="f" * 64, samples=9, recorded=9)
    bobs = EpochWork(key_thumbprint=key_of("bob"), samples=50, recorded=50)
    finished = world.report(0, {}, work=(bobs, stranger), discarded=(stranger,))
    world.settle(finished=[finished])
    assert world.entries("bob") == [(0, 50, "rejected", "barred")]
    assert LedgerEntry.objects.get().reason == "this account is suspended"


def test_other_lineages_are_left_alone(world: World) -> None:
    world.settle(finished=[world.report(0, WORK)])
    world.settle(lineage=2, statements=[world.statement(name, 0, WORK) for name in WORK])
    assert {state for *_, state, _ in world.entries("bob")} == {"provisional"}


def test_old_evidence_is_forgotten_and_the_ledger_stays(world: World) -> None:
    world.round(0, WORK)
    assert evidence_prune(world.now + EVIDENCE_KEPT) == 0
    assert evidence_prune(world.now + EVIDENCE_KEPT + timedelta(seconds=1)) == 1
    assert LedgerEntry.objects.count() == 2


def test_a_statement_of_later_epochs_gives_an_older_one_no_loss(world: World) -> None:
    recent = tuple(EpochSamples(epoch=n, samples=50) for n in range(3))
    world.settle(
        finished=[world.report(0, WORK)],
        statements=[world.statement("bob", 0, WORK, recent=recent, at=3)],
    )
    assert "loss" not in EpochEvidence.objects.get().claims["Qmbob"]


def test_revoked_devices_and_people_barred_from_the_run_earn_nothing(
    world: World, alice: User
) -> None:
    device_revoke(world.devices["bob"].user, world.devices["bob"])
    run_bar_add(alice, world.run, world.devices["charlie"].user, "x")
    world.round(0, WORK)
    assert set(LedgerEntry.objects.values_list("state", "reason")) == {
        ("rejected", "this device was revoked"),
        ("rejected", "this account is barred from the run"),
    }


def test_rates_of_very_short_epochs_say_nothing(world: World) -> None:
    for device in world.devices.values():
        device.hardware = {"device": "cpu"}
        device.save()
    world.devices["eve"] = device_make(world.devices["bob"].user, hardware={"device": "cpu"})[0]
    work = {"bob": 50, "charlie": 30, "dora": 40, "eve": 5000}
    finished = world.report(0, work)
    world.settle(
        finished=[Finished(finished.report, 0.5)],
        statements=[world.statement(name, 0, work) for name in work],
    )
    assert not Suspicion.objects.exists()


def test_a_claim_above_its_weight_is_cut_and_makes_the_device_suspicious(world: World) -> None:
    work = {"bob": 50, "charlie": 30, "dora": 20}
    lie = world.statement("bob", 0, {**work, "bob": 5000})
    others = [world.statement(name, 0, work) for name in ("charlie", "dora")]
    world.settle(finished=[world.report(0, {**work, "bob": 5000})], statements=[lie, *others])
    assert world.entries("bob") == [(0, 50, "confirmed", "above_weight")]
    suspicion = Suspicion.objects.get()
    assert (suspicion.device, suspicion.kind) == (world.devices["bob"], "claim_above_weight")
    assert suspicion.evidence == {"epoch": 0, "stated": 5000, "seen": 50}
    assert AuditEntry.objects.get(code="suspicion.raised").data["stated"] == 5000
    world.round(1, work)
    assert world.entries("bob")[1:] == [(1, 50, "provisional", "quarantined")]
    assert world.entries("dora") == [(0, 20, "confirmed", ""), (1, 20, "confirmed", "")]
    assert EpochEvidence.objects.get(epoch=1).settled_at, "only an organiser decides now"


def test_who_claims_samples_that_nobody_averaged_is_noticed_when_it_comes_again(
    world: World,
) -> None:
    alone = {"dora": 40}
    for epoch in range(4):
        statements = [world.statement(name, epoch, WORK) for name in WORK]
        statements.append(world.statement("dora", epoch, alone))
        report = world.report(epoch, {**WORK, "dora": 40})
        world.settle(finished=[report], statements=statements)
        assert world.entries("dora")[-1][2:] == ("provisional", "not_in_group")
        world.settle(later=EVIDENCE_PATIENCE)
        assert world.entries("dora")[-1] == (epoch, 40, "rejected", "not_in_group")
        assert Suspicion.objects.exists() == (epoch >= 2)
    (row,) = Suspicion.objects.all()
    assert (row.device, row.kind) == (world.devices["dora"], "samples_without_averaging")
    assert row.evidence == {"epoch": 2, "stated": 40, "epochs": 3}
    assert (world.total("bob"), world.total("charlie"), world.total("dora")) == (200, 120, 0)


def test_a_machine_far_faster_than_its_class_is_noticed(world: World) -> None:
    for device in world.devices.values():
        device.hardware = {"device": "cpu"}
        device.save()
    fourth = device_make(world.devices["bob"].user, hardware={"device": "cpu"})[0]
    world.devices["eve"] = fourth
    work = {"bob": 50, "charlie": 30, "dora": 40, "eve": 5000}
    world.round(0, work)
    (row,) = Suspicion.objects.all()
    assert (row.device, row.kind) == (fourth, SuspicionKind.IMPOSSIBLE_THROUGHPUT)
    assert row.evidence == {"epoch": 0, "hardware": "cpu", "samples_per_second": 250.0}


def test_a_loss_that_stays_far_off_is_noticed_in_the_third_epoch(world: World) -> None:
    world.devices["eve"] = device_make(world.devices["bob"].user)[0]
    work = {"bob": 50, "charlie": 30, "dora": 40, "eve": 40}
    for epoch in range(3):
        assert not Suspicion.objects.exists()
        statements = [
            world.statement(name, epoch, work, loss=9.0 if name == "eve" else 2.0 + n / 10)
            for n, name in enumerate(work)
        ]
        world.settle(finished=[world.report(epoch, work)], statements=statements)
    (row,) = Suspicion.objects.all()
    assert (row.device, row.kind) == (world.devices["eve"], SuspicionKind.LOSS_OUTLIER)
    assert row.evidence == {"epoch": 2, "loss": 9.0}
