"""Alert mail: to whom by default, and what becomes of it when the mail server fails."""

from datetime import timedelta
from smtplib import SMTPRecipientsRefused
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from tests.factories import user_make
from tests.factories_alerts import alert_make
from tests.factories_runs import run_make
from web.accounts.models import User
from web.alerts import mails
from web.alerts.mails import RETRY, alerts_mail
from web.alerts.models import AlertEvent, AlertMail
from web.alerts.services import alert_mail_set
from web.runs.models import Run, RunMember
from web.runs.services import run_member_add

pytestmark = pytest.mark.django_db
NOW = timezone.now()


@pytest.fixture
def run(alice: User, bob: User) -> Run:
    """A run whose founder and whose second organiser both want mail."""
    run = run_make(alice)
    run_member_add(alice, run, bob, RunMember.Part.ORGANISER)
    alert_mail_set(bob, run, is_wanted=True)
    return run


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the addresses to which the mail server refuses to send."""
    refused: set[str] = set()

    def send(subject: str, text: str, sender: str, to: list[str], **_: Any) -> None:
        if refused & set(to):
            raise SMTPRecipientsRefused({})
        mail.outbox.append(mail.EmailMessage(subject, text, sender, to))

    monkeypatch.setattr(mails, "send_mail", send)
    return refused


def told() -> list[str]:
    return [message.to[0].partition("@")[0] for message in mail.outbox]


def test_what_a_mail_server_refused_is_tried_again_and_told_nobody_twice(
    run: Run, server: set[str]
) -> None:
    alert_make(run)
    server.add("bob@example.org")
    assert alerts_mail(NOW) == 1
    assert alerts_mail(NOW + timedelta(seconds=59)) == 0, "with patience"
    server.clear()
    assert alerts_mail(NOW + RETRY[0]) == 1
    assert told() == ["alice", "bob"]
    assert AlertEvent.objects.get().mailed_at is not None
    assert alerts_mail(NOW + timedelta(days=1)) == 0


def test_after_bounded_tries_an_event_is_given_up(run: Run, server: set[str], caplog: Any) -> None:
    alert_make(run)
    server |= {"alice@example.org", "bob@example.org"}
    now = NOW
    for wait in (*RETRY, timedelta()):
        assert alerts_mail(now) == 0
        now += wait
    event = AlertEvent.objects.get()
    assert event.mailed_at == now
    assert event.num_mail_tries == len(RETRY) + 1
    assert "given up" in caplog.text
    server.clear()
    assert alerts_mail(now + timedelta(days=1)) == 0


def test_what_is_being_mailed_is_left_alone_until_its_time_is_over(
    run: Run, server: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed while it mails loses nothing."""
    alert_make(run)

    def die(*_: Any, **__: Any) -> None:
        assert alerts_mail(NOW) == 0, "a second caller finds nothing"
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(mails, "send_mail", die)
        with pytest.raises(KeyboardInterrupt):
            alerts_mail(NOW)
    assert alerts_mail(NOW + timedelta(minutes=9)) == 0
    assert alerts_mail(NOW + timedelta(minutes=10)) == 2


def test_a_mail_server_that_is_away_breaks_nothing(run: Run, settings: Any) -> None:
    alert_make(run)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    assert alerts_mail(NOW) == 0
    assert AlertEvent.objects.get().mailed_at is None


def test_an_alert_that_nobody_wants_by_mail_waits_for_nobody(run: Run, alice: User) -> None:
    User.objects.update(email="")
    alert_make(run)
    assert alerts_mail(NOW) == 0
    assert AlertEvent.objects.get().mailed_at == NOW


def test_who_makes_a_run_gets_its_alerts_until_they_end_it(alice: User) -> None:
    run = run_make(alice)
    assert AlertMail.objects.filter(run=run).get().user == alice
    alert_mail_set(alice, run, is_wanted=False)
    assert not AlertMail.objects.filter(run=run).exists()
    User.objects.filter(pk=alice.pk).update(email="")
    alice.refresh_from_db()
    nameless = run_make(alice, "other")
    assert not AlertMail.objects.filter(run=nameless).exists(), "there is no address"


def test_staff_gets_the_sites_alerts_until_they_end_it(alice: User, bob: User) -> None:
    assert [row.user for row in AlertMail.objects.filter(run=None)] == [alice]
    bob.is_staff = True
    bob.save()
    assert AlertMail.objects.filter(run=None, user=bob).exists()
    alert_mail_set(bob, None, is_wanted=False)
    bob.save()
    User.objects.get(pk=bob.pk).save(update_fields=["last_login"])
    assert not AlertMail.objects.filter(run=None, user=bob).exists(), "it stays ended"
    user_make("dora", is_staff=True, is_superuser=True)
    alert_make(None, "disk_filling")
    assert alerts_mail(NOW) == 2
    assert sorted(told()) == ["alice", "dora"]
