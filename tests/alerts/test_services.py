"""From what coordinators report to rows, history, mails and webhooks."""

import asyncio
import socket
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import IntegrityError
from django.utils import timezone

from tests.factories_alerts import alert_make
from tests.factories_runs import (
    Swarm,
    draft_make,
    report_make,
    run_make,
    snapshot_take,
    swarm_make,
)
from web.accounts.models import User
from web.alerts import services
from web.alerts.dial import bootstraps_dial, targets_dial, tcp_target
from web.alerts.gather import dials_read, facts_gather
from web.alerts.kinds import AlertKind, RuleValues, rule_values
from web.alerts.mails import MAX_LINES, alerts_mail
from web.alerts.models import Alert, AlertEvent, AlertTrack, WebhookDelivery
from web.alerts.rules import RUN_KINDS
from web.alerts.selectors import alerts_count, values_of
from web.alerts.services import (
    alert_acknowledge,
    alert_mail_set,
    alert_mute,
    alert_settings_change,
    alerts_check,
    run_check,
    site_check,
)
from web.alerts.tasks import alerts_check_task, alerts_mail_task, webhooks_deliver_task
from web.alerts.webhooks import webhook_create
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.monitoring.models import Peer, RunSwarm
from web.runs.models import BootstrapPeer, Run
from web.runs.services import run_transition

pytestmark = pytest.mark.django_db
PEERS = AlertKind.PEERS_BELOW_MINIMUM
START = timezone.now().replace(microsecond=0)


@pytest.fixture
def swarm(alice: User) -> Swarm:
    """A run that wants four trainers and has two."""
    draft = draft_make(swarm={"target_batch_size": 100, "min_peers": 4})
    run = run_make(alice, draft=draft)
    run.state_changed_at = START - timedelta(minutes=1)
    run.save(update_fields=("state_changed_at",))
    return swarm_make(run, 2)


def watch(swarm: Swarm, seconds: float, *, begin: float = 0, step: int = 15) -> datetime:
    """Report and check for some seconds; return when it ended."""
    now = START + timedelta(seconds=begin)
    for _ in range(int(seconds // step) + 1):
        now += timedelta(seconds=step)
        snapshot_take(swarm, now)
        run_check(swarm.run, now)
    return now


def test_too_few_peers_open_an_alert_after_a_while_and_it_closes_by_itself(swarm: Swarm) -> None:
    now = watch(swarm, 90)
    assert not Alert.objects.exists()
    now = watch(swarm, 60, begin=(now - START).total_seconds())
    alert = Alert.objects.get()
    assert (alert.kind, alert.state, alert.severity) == (PEERS, "open", "warning")
    assert alert.sentence == "2 of at least 4 trainers are in the swarm."
    assert alert.evidence["num_peers"] == 2
    assert alert.evidence["report_age_s"] == 0
    alert_settings_change(swarm.run.organiser, swarm.run, {PEERS: RuleValues(True, 0.5, 60, 60)})
    now = watch(swarm, 90, begin=(now - START).total_seconds())
    alert.refresh_from_db()
    assert alert.state == "closed"
    assert alert.closed_at is not None
    assert [e.kind for e in alert.events.all()] == ["opened", "closed"]


def test_a_silent_coordinator_opens_one_alert_however_often_it_is_checked(swarm: Swarm) -> None:
    snapshot_take(swarm, START)
    for seconds in range(0, 1200, 15):
        run_check(swarm.run, START + timedelta(seconds=seconds))
    assert [a.kind for a in Alert.objects.all()] == [AlertKind.COORDINATOR_SILENT]


def test_a_paused_run_closes_its_alerts_and_opens_none(swarm: Swarm) -> None:
    now = watch(swarm, 180)
    run_transition(swarm.run.organiser, swarm.run, "pause", "rest")
    run = Run.objects.get()
    for seconds in range(0, 400, 15):
        run_check(run, now + timedelta(seconds=seconds))
    assert [a.state for a in Alert.objects.all()] == ["closed"]


def test_facts_come_from_the_rows(swarm: Swarm) -> None:
    reports = tuple(report_make(swarm, epoch, START, loss=3.0 - epoch) for epoch in range(2))
    snapshot_take(swarm, START, epoch=2, finished_epochs=reports)
    Peer.objects.filter(role="trainer").update(
        heartbeat={"state": "training", "epoch": 2}, heartbeat_at=START
    )
    facts = facts_gather(Run.objects.get(), START)
    assert (facts.num_peers, facts.min_peers, facts.epoch) == (2, 4, 2)
    assert facts.losses == (3.0, 2.0)
    assert facts.last_epoch_at == START
    assert facts.checkpoint_epoch is None
    assert [m.epoch for m in facts.members] == [2, 2]
    assert facts.members[0].seen_at is not None


def test_a_swarm_in_two_parts_is_suspected(swarm: Swarm) -> None:
    """Both trainers say to the site that they train; the coordinator sees one of them."""
    from tests.factories_runs import observation_make

    now = START
    for _ in range(20):
        now += timedelta(seconds=15)
        Peer.objects.filter(role="trainer").update(
            heartbeat={"state": "training", "epoch": 0}, heartbeat_at=now
        )
        snapshot_take(swarm, now, peers=(observation_make(swarm.volunteers[0], now),))
        run_check(swarm.run, now)
    alert = Alert.objects.get(kind=AlertKind.PARTITION_SUSPECTED)
    assert alert.evidence["unseen"] == 1
    assert alert.evidence["trainers"] == 2


def test_one_run_that_cannot_be_judged_does_not_stop_the_others(
    swarm: Swarm, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = run_make(alice, "other")
    judged = []

    def check(run: Run, now: datetime) -> int:
        judged.append(run.slug)
        if run == swarm.run:
            raise ValueError("odd row")
        return 0

    monkeypatch.setattr(services, "run_check", check)
    alerts_check(START)
    assert judged == ["demo", other.slug]


def test_a_database_error_in_one_run_ends_only_its_own_check(
    swarm: Swarm, alice: User, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    other = run_make(alice, "other")
    judged = []

    def check(run: Run, now: datetime) -> int:
        if run == swarm.run:
            Run.objects.create(slug=run.slug, title="twice", organiser=alice)
        judged.append(Run.objects.count())
        return 1

    monkeypatch.setattr(services, "run_check", check)
    assert alerts_check(START) == 1
    assert judged == [2], f"{other} is judged with a database that answers"
    assert "run demo: its alerts could not be judged" in caplog.text
    monkeypatch.setattr(services, "site_check", lambda now: check(swarm.run, now))
    assert alerts_check(START) == 1, "the site's own check stops nobody either"


def test_tracks_that_two_checks_make_at_the_same_time_are_made_once(
    swarm: Swarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = AlertTrack.objects.bulk_create

    def slow(rows: list[AlertTrack], **options: Any) -> Any:
        make([AlertTrack(run=row.run, kind=row.kind) for row in rows])  # somebody was faster
        return make(rows, **options)

    monkeypatch.setattr(AlertTrack.objects, "bulk_create", slow)
    run_check(swarm.run, START)
    assert AlertTrack.objects.filter(run=swarm.run).count() == len(RUN_KINDS)
    assert not AlertTrack.objects.filter(checked_at=None).exists()


def test_the_site_watches_its_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "disk_gather", lambda: (95, 100))
    for seconds in range(0, 75, 15):
        site_check(START + timedelta(seconds=seconds))
    alert = Alert.objects.get()
    assert (alert.run, alert.kind) == (None, AlertKind.DISK_FILLING)
    assert alerts_count([], with_site=True) == 1
    assert alerts_count([], with_site=False) == 0


def test_two_open_alerts_of_one_kind_are_refused_by_the_database(swarm: Swarm) -> None:
    watch(swarm, 180)
    alert = Alert.objects.get()
    alert.pk, alert.public_id = None, "another"
    with pytest.raises(IntegrityError):
        alert.save(force_insert=True)


def test_somebody_takes_an_alert_on_and_says_why(swarm: Swarm, alice: User, bob: User) -> None:
    watch(swarm, 180)
    alert = Alert.objects.get()
    with pytest.raises(AppError, match="organisers"):
        alert_acknowledge(bob, alert, "mine")
    with pytest.raises(AppError, match="say why"):
        alert_acknowledge(alice, alert, "  ")
    alert_acknowledge(alice, alert, "launching two trainers")
    with pytest.raises(AppError, match="already"):
        alert_acknowledge(alice, alert, "again")
    event = alert.events.last()
    assert event is not None
    assert (event.kind, event.actor, event.text) == (
        "acknowledged", alice, "launching two trainers",
    )  # fmt: skip
    entry = AuditEntry.objects.get(code="alert.acknowledged")
    assert (entry.actor_name, entry.target) == ("alice", f"demo/{alert.public_id}")
    assert alerts_count([swarm.run], with_site=False) == 0


def test_acts_on_the_sites_alerts_are_of_no_run(alice: User) -> None:
    """A run may be called ``site``."""
    alert = alert_make(None, AlertKind.DISK_FILLING)
    alert_acknowledge(alice, alert, "mine")
    alert_mail_set(alice, None, is_wanted=False)
    codes = AuditEntry.objects.filter(code__startswith="alert.").values_list("code", "run")
    assert set(codes) == {("alert.acknowledged", ""), ("alert.mail.set", "")}


def test_a_muted_kind_is_written_down_and_told_to_nobody(swarm: Swarm, alice: User) -> None:
    alert_mail_set(alice, swarm.run, is_wanted=True)
    now = watch(swarm, 180)
    alert = Alert.objects.get()
    alerts_mail(now)
    assert len(mail.outbox) == 1
    with pytest.raises(AppError, match="30 days"):
        alert_mute(alice, alert, timezone.now() + timedelta(days=31), "long")
    alert_mute(alice, alert, timezone.now() + timedelta(days=1), "holiday")
    entry = AuditEntry.objects.get(code="alert.muted")
    assert entry.data["reason"] == "holiday"
    assert entry.data["before"] == {"muted_until": None}
    assert entry.data["after"]["muted_until"] is not None
    Peer.objects.all().delete()
    AlertTrack.objects.filter(kind=PEERS).update(changing_since=now)
    run_transition(alice, swarm.run, "pause", "rest")
    for seconds in range(0, 300, 15):
        run_check(Run.objects.get(), now + timedelta(seconds=seconds))
    alert.refresh_from_db()
    assert alert.state == "closed"
    assert alerts_mail(now) == 0
    assert len(mail.outbox) == 1


def test_many_alerts_are_one_mail_and_only_for_those_who_want_it(
    swarm: Swarm, alice: User, bob: User
) -> None:
    with pytest.raises(AppError):
        alert_mail_set(bob, swarm.run, is_wanted=True)
    for is_wanted in (True, False, True, True):
        alert_mail_set(alice, swarm.run, is_wanted=is_wanted)
    now = START
    for i in range(MAX_LINES + 5):
        alert = Alert.objects.create(
            run=swarm.run, kind=PEERS, severity="warning", sentence=f"sentence {i}",
            judged_at=now, opened_at=now, state="closed", closed_at=now,
        )  # fmt: skip
        AlertEvent.objects.create(alert=alert, kind="opened", at=now, text=f"sentence {i}")
    assert alerts_mail(now) == 1
    (message,) = mail.outbox
    assert message.to == ["alice@example.org"]
    assert message.subject == "Beeyard: 35 alerts opened, 0 closed"
    assert "sentence 0" in message.body
    assert "And 5 more" in message.body
    assert "/control/runs/demo/alerts/" in message.body
    assert alerts_mail(now) == 0, "each is told once"
    alert_mail_set(alice, swarm.run, is_wanted=False)
    entries = AuditEntry.objects.filter(code="alert.mail.set", run="demo").order_by("seq")
    assert [entry.data["after"]["mailed"] for entry in entries] == [False, True, False]
    AlertEvent.objects.update(mailed_at=None)
    assert alerts_mail(now) == 0


def test_who_organises_no_more_gets_no_mail(swarm: Swarm, alice: User, bob: User) -> None:
    alert_mail_set(alice, swarm.run, is_wanted=True)
    Run.objects.update(organiser=bob)
    swarm.run.members.all().delete()
    now = watch(swarm, 180)
    assert Alert.objects.exists()
    assert alerts_mail(now) == 0


def test_webhooks_are_told_what_opened(
    swarm: Swarm, alice: User, settings: Any, tmp_path: Any
) -> None:
    settings.KEYS_DIR = tmp_path
    webhook_create(alice, swarm.run, "https://example.org/")
    watch(swarm, 180)
    delivery = WebhookDelivery.objects.get()
    assert delivery.event == "alert.opened"
    assert delivery.body["alert"]["kind"] == PEERS
    assert delivery.body["alert"]["remedy"]
    assert delivery.body["link"].endswith("/control/runs/demo/alerts/")


def test_rules_are_changed_by_organisers_within_bounds(
    swarm: Swarm, alice: User, bob: User
) -> None:
    good = {PEERS: RuleValues(True, 0.5, 60, 60)}
    with pytest.raises(AppError):
        alert_settings_change(bob, swarm.run, good)
    for wrong in (RuleValues(True, 0.0, 60, 60), RuleValues(True, 1.0, -1, 60)):
        with pytest.raises(AppError, match="between"):
            alert_settings_change(alice, swarm.run, {PEERS: wrong})
    alert_settings_change(alice, swarm.run, good)
    assert values_of(swarm.run)[PEERS].limit == 0.5
    alert_settings_change(alice, swarm.run, {k: rule_values(k) for k in RUN_KINDS})
    assert values_of(swarm.run)[PEERS] == rule_values(PEERS)
    assert AuditEntry.objects.filter(code="alert.settings.changed").count() == 2


def test_bootstrap_peers_are_really_dialled(swarm: Swarm) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        for address in (f"/ip4/127.0.0.1/tcp/{port}/p2p/QmA", "/ip4/127.0.0.1/tcp/1/p2p/QmB"):
            BootstrapPeer.objects.create(run=swarm.run, lineage=1, address=address, seen_at=START)
        old = START - timedelta(days=1)
        BootstrapPeer.objects.create(
            run=swarm.run, lineage=1, address="/ip4/127.0.0.1/tcp/2/p2p/QmC", seen_at=old
        )
        assert bootstraps_dial(START) == 2
    answers, at = dials_read(swarm.run)
    assert sorted(answers.values()) == [False, True]
    assert at == START


def test_a_dial_ends_in_time() -> None:
    began = datetime.now().timestamp()  # noqa: DTZ005
    assert asyncio.run(targets_dial([("192.0.2.1", 9)] * 8, seconds=0.3)) == [False] * 8
    assert datetime.now().timestamp() - began < 2  # noqa: DTZ005


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("/ip4/1.2.3.4/tcp/80/p2p/Qm", ("1.2.3.4", 80)),
        ("/ip6/::1/tcp/80", ("::1", 80)),
        ("/dns4/a.example/tcp/1/p2p/Qm", ("a.example", 1)),
        ("/ip4/1.2.3.4/udp/80/quic", None),
        ("/ip4/1.2.3.4/tcp/99999", None),
        ("/ip4/1.2.3.4/tcp/80/p2p/QmR/p2p-circuit/p2p/QmX", None),
        ("nonsense", None),
    ],
)
def test_targets_are_read_from_multiaddresses(address: str, target: Any) -> None:
    assert tcp_target(address) == target


def test_the_scheduled_jobs_run(swarm: Swarm) -> None:
    RunSwarm.objects.update(live={})
    for task in (alerts_check_task, alerts_mail_task, webhooks_deliver_task):
        task()


def test_a_check_of_one_run_is_few_queries(
    swarm: Swarm, django_assert_max_num_queries: Any
) -> None:
    now = watch(swarm, 180)
    with django_assert_max_num_queries(13):
        run_check(swarm.run, now + timedelta(seconds=1))
