"""Webhooks: signed, tried again, given up, never into our own network unless it is allowed."""

import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import IntegrityError
from django.utils import timezone

from tests.alerts.receiver import Receiver, receiver_run
from tests.factories_runs import run_make
from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.alerts import guard, posting
from web.alerts.guard import ip_is_public
from web.alerts.models import Webhook, WebhookDelivery
from web.alerts.posting import Letter, letter_post
from web.alerts.sealed import SealError, seal, unseal
from web.alerts.services import alert_mail_set
from web.alerts.webhooks import (
    FAILED_LIMIT,
    MAX_PER_RUN,
    RETRY_SECONDS,
    deliveries_due,
    deliveries_prune,
    delivery_attempt,
    webhook_create,
    webhook_delete,
    webhook_enable,
    webhook_test,
)
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.runs.models import Run

SECRET = "whsec_test"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiver_run() as server:
        yield server


@pytest.fixture
def run(alice: User, settings: Any, tmp_path: Any) -> Run:
    settings.WEBHOOK_PRIVATE = True
    settings.KEYS_DIR = tmp_path / "keys"
    return run_make(alice)


def letter(url: str) -> Letter:
    return Letter(url, b'{"a":1}', SECRET, "alert.opened", "abc")


def is_signed(headers: dict[str, str], body: bytes, secret: str) -> bool:
    """Check a signature as docs/howto/alerts.md tells receivers to."""
    fields = dict(part.split("=", 1) for part in headers["Beeyard-Signature"].split(","))
    text = fields["t"].encode() + b"." + body
    right = hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()
    is_recent = abs(datetime.now().timestamp() - int(fields["t"])) < 300  # noqa: DTZ005
    return is_recent and hmac.compare_digest(right, fields["v1"])


def test_a_letter_arrives_with_a_signature_that_holds(receiver: Receiver) -> None:
    outcome = letter_post(letter(receiver.url), is_private_allowed=True)
    assert (outcome.is_delivered, outcome.status) == (True, 204)
    ((path, headers, body),) = receiver.received
    assert (path, body) == ("/hook?x=1", b'{"a":1}')
    assert headers["Beeyard-Event"] == "alert.opened"
    assert headers["Beeyard-Delivery"] == "abc"
    assert headers["Host"].startswith("127.0.0.1:")
    assert is_signed(headers, body, SECRET)
    assert not is_signed(headers, body + b" ", SECRET)
    assert not is_signed(headers, body, "other")


@pytest.mark.parametrize(
    ("mode", "status", "words"),
    [
        ("error", 500, "Answered with 500."),
        ("redirect", 302, "redirect, which is not followed"),
        ("closing", None, "The connection failed"),
        ("slow", None, "No answer within"),
    ],
)
def test_a_receiver_that_misbehaves_is_a_failed_delivery(
    mode: str, status: int | None, words: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "TOTAL_SECONDS", 0.6)
    receiver.mode = mode
    outcome = letter_post(letter(receiver.url), is_private_allowed=True)
    assert (outcome.is_delivered, outcome.status) == (False, status)
    assert words in outcome.text
    assert outcome.seconds < 3
    assert len(receiver.received) == 1, "one request, no redirect followed"


def test_the_log_does_not_hold_the_path_of_a_webhook(receiver: Receiver, caplog: Any) -> None:
    caplog.set_level("INFO")
    assert letter_post(letter(receiver.url), is_private_allowed=True).is_delivered
    assert "/hook" not in caplog.text


def test_an_answer_without_end_is_not_read(receiver: Receiver) -> None:
    receiver.mode = "endless"
    outcome = letter_post(letter(receiver.url), is_private_allowed=True)
    assert outcome.is_delivered
    assert outcome.seconds < 3


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:{}/", "http://localhost:{}/", "http://[::1]:{}/", "http://0.0.0.0:{}/",
     "http://[::ffff:127.0.0.1]:{}/", "http://2130706433:{}/", "http://127.1:{}/"],
)  # fmt: skip
def test_this_machine_is_not_called_unless_it_is_allowed(url: str, receiver: Receiver) -> None:
    outcome = letter_post(letter(url.format(receiver.server_address[1])))
    assert not outcome.is_delivered
    assert receiver.received == []


def test_the_checked_address_is_called_and_the_name_not_asked_again(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is public when it is checked cannot lead here a moment later."""
    calls = []

    async def resolve(host: str, port: int, **_: Any) -> str:
        calls.append(host)
        return "127.0.0.1"

    monkeypatch.setattr(posting, "host_resolve", resolve)
    url = f"http://hooks.invalid:{receiver.server_address[1]}/x"
    assert letter_post(letter(url)).is_delivered
    assert calls == ["hooks.invalid"]
    assert receiver.received[0][1]["Host"].startswith("hooks.invalid:")


def test_a_resolver_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It could outlast the claim, and somebody else would deliver the same message."""
    answered = threading.Event()

    def slow(*_: Any, **__: Any) -> list[Any]:
        answered.wait(5)
        return [(0, 0, 0, "", ("127.0.0.1", 9))]

    monkeypatch.setattr(posting, "TOTAL_SECONDS", 0.3)
    monkeypatch.setattr(socket, "getaddrinfo", slow)
    began = time.monotonic()
    outcome = letter_post(letter("http://slow.example/"), is_private_allowed=True)
    seconds = time.monotonic() - began
    answered.set()
    assert (outcome.is_delivered, outcome.text[:17]) == (False, "No answer within ")
    assert seconds < 2


def test_a_name_that_leads_nowhere_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(-2, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert (
        letter_post(letter("http://gone.example/")).text == "The host gone.example was not found."
    )


def test_a_name_with_one_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    async def resolve(both: list[str]) -> str:
        found = [(0, 0, 0, "", (ip, 80)) for ip in both]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        return await guard.host_resolve("x.example", 80, is_private_allowed=False)

    assert asyncio.run(resolve(["93.184.216.34"])) == "93.184.216.34"
    with pytest.raises(guard.RefusedAddress):
        asyncio.run(resolve(["93.184.216.34", "10.0.0.1"]))


@pytest.mark.parametrize(
    "ip",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
     "0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0",
     "fc00::1", "ff02::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "nonsense"],
)  # fmt: skip
def test_addresses_of_private_networks_are_known_in_every_dress(ip: str) -> None:
    assert not ip_is_public(ip)


def test_addresses_of_the_open_internet_are_public() -> None:
    assert ip_is_public("93.184.216.34")
    assert ip_is_public("2606:2800:220:1::1")


def test_a_secret_is_not_in_the_database_and_comes_back(run: Run, alice: User) -> None:
    webhook, secret = webhook_create(alice, run, "https://example.org/hook")
    webhook.refresh_from_db()
    assert secret not in webhook.secret
    assert unseal(webhook.secret) == secret
    with pytest.raises(SealError):
        unseal(seal("x")[:-8] + "AAAAAAA=")
    entry = AuditEntry.objects.get(code="webhook.created")
    assert entry.data == {"host": "example.org"}, "a path may be a secret of its own"


@pytest.mark.parametrize(
    "url",
    ["", "ftp://example.org/", "https://", "https://user:pw@example.org/", "javascript:alert(1)",
     "https://exa mple.org/", "https://example.org:99999/", "http://10.0.0.1/", "http://[::1]/",
     "http://localhost/", "http://169.254.169.254/latest/", "https://example.org/" + "x" * 500],
)  # fmt: skip
def test_an_address_that_cannot_be_called_is_refused_with_a_word(
    url: str, run: Run, alice: User, settings: Any
) -> None:
    settings.WEBHOOK_PRIVATE = False
    with pytest.raises(AppError) as caught:
        webhook_create(alice, run, url)
    assert caught.value.code is ErrorCode.BODY_INVALID
    assert caught.value.detail.startswith("url: ")


def test_outsiders_make_test_and_delete_no_webhook(run: Run, alice: User, bob: User) -> None:
    webhook, _ = webhook_create(alice, run, "https://example.org/")
    for act in (webhook_test, webhook_enable, webhook_delete):
        with pytest.raises(AppError):
            act(bob, webhook)
    with pytest.raises(AppError):
        webhook_create(bob, run, "https://example.org/")


def test_a_run_has_a_bounded_number_of_webhooks(run: Run, alice: User) -> None:
    for _ in range(MAX_PER_RUN):
        webhook_create(alice, run, "https://example.org/")
    with pytest.raises(AppError, match="at most"):
        webhook_create(alice, run, "https://example.org/")


def test_the_test_button_delivers_at_once(
    run: Run, alice: User, receiver: Receiver, django_capture_on_commit_callbacks: Any
) -> None:
    webhook, secret = webhook_create(alice, run, receiver.url)
    with django_capture_on_commit_callbacks(execute=True):
        delivery = webhook_test(alice, webhook)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.status, delivery.num_attempts) == ("delivered", 204, 1)
    _, headers, body = receiver.received[0]
    assert is_signed(headers, body, secret)
    assert json.loads(body)["event"] == "webhook.test"


def test_one_test_of_a_run_is_on_its_way_at_a_time(run: Run, alice: User) -> None:
    webhook, _ = webhook_create(alice, run, "https://example.org/")
    first = webhook_test(alice, webhook)
    with pytest.raises(AppError, match="still on its way"):
        webhook_test(alice, webhook)
    first.state = WebhookDelivery.State.GIVEN_UP
    first.save()
    assert webhook_test(alice, webhook).pk != first.pk


def waiting(webhook: Webhook, now: datetime) -> WebhookDelivery:
    return WebhookDelivery.objects.create(
        webhook=webhook, event="alert.opened", body={}, created_at=now, next_at=now
    )


def test_a_delivery_is_tried_again_with_patience_and_then_given_up(
    run: Run, alice: User, receiver: Receiver
) -> None:
    receiver.mode = "error"
    webhook, _ = webhook_create(alice, run, receiver.url)
    now = timezone.now()
    delivery = waiting(webhook, now)
    for wait in RETRY_SECONDS:
        assert delivery_attempt(delivery.pk, now)
        delivery.refresh_from_db()
        assert delivery.next_at == now + timedelta(seconds=wait)
        assert not delivery_attempt(delivery.pk, now), "not before its time"
        assert deliveries_due(now) == []
        now = delivery.next_at
    assert delivery_attempt(delivery.pk, now)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.num_attempts) == ("given_up", len(RETRY_SECONDS) + 1)
    assert deliveries_due(now + timedelta(days=1)) == []
    assert len(receiver.received) == len(RETRY_SECONDS) + 1


def test_after_failures_in_a_row_a_webhook_is_disabled_and_its_organiser_told(
    run: Run, alice: User, receiver: Receiver, django_capture_on_commit_callbacks: Any
) -> None:
    receiver.mode = "error"
    webhook, _ = webhook_create(alice, run, receiver.url)
    alert_mail_set(alice, run, is_wanted=True)
    now = timezone.now()
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(FAILED_LIMIT + 1):
            delivery = waiting(webhook, now)
            WebhookDelivery.objects.filter(pk=delivery.pk).update(num_attempts=len(RETRY_SECONDS))
            delivery_attempt(delivery.pk, now)
    webhook.refresh_from_db()
    assert webhook.disabled_at == now
    assert len(receiver.received) == FAILED_LIMIT, "a disabled one is not called"
    assert [m.subject for m in mail.outbox] == ["Beeyard: The demo run: a webhook was disabled"]
    assert AuditEntry.objects.filter(code="webhook.disabled").count() == 1
    webhook_enable(alice, webhook)
    receiver.mode = "ok"
    delivery = waiting(webhook, now)
    assert delivery_attempt(delivery.pk, now)
    delivery.refresh_from_db()
    assert delivery.state == "delivered"


def test_one_success_forgets_failures(run: Run, alice: User, receiver: Receiver) -> None:
    webhook, _ = webhook_create(alice, run, receiver.url)
    Webhook.objects.update(num_failed=FAILED_LIMIT - 1)
    now = timezone.now()
    delivery_attempt(waiting(webhook, now).pk, now)
    webhook.refresh_from_db()
    assert webhook.num_failed == 0


def test_old_entries_of_the_log_are_forgotten_and_what_waits_is_not(run: Run, alice: User) -> None:
    webhook, _ = webhook_create(alice, run, "https://example.org/")
    now = timezone.now()
    for state in ("delivered", "waiting"):
        row = waiting(webhook, now - timedelta(days=60))
        WebhookDelivery.objects.filter(pk=row.pk).update(state=state)
    assert deliveries_prune(now) == 1
    assert WebhookDelivery.objects.get().state == "waiting"


def test_a_delivery_cannot_lose_its_webhook(run: Run) -> None:
    with pytest.raises(IntegrityError):
        WebhookDelivery.objects.create(event="x", body={}, created_at=timezone.now())


@pytest.mark.parametrize(
    "url", ["http://1\u30021\u30021\u30021/hook", "https://b\u00fccher.example/"]
)
def test_a_host_in_other_letters_is_refused_in_words_and_never_a_crash(url: str) -> None:
    with pytest.raises(guard.RefusedAddress, match="ASCII"):
        guard.url_check(url)
    letter = posting.Letter(url, b"{}", "secret", "alert.opened", "id")
    outcome = posting.letter_post(letter)
    assert not outcome.is_delivered
    assert "ASCII" in outcome.text
