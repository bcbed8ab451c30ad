"""Limits count per window and say how long to wait."""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache
from django.test import RequestFactory
from redis.exceptions import ConnectionError as RedisConnectionError

from training.protocol.errors import ErrorCode
from web.core.errors import AppError
from web.core.ratelimit import client_address, rate_limit


@pytest.fixture(autouse=True)
def _limits_on(settings: Any) -> None:
    settings.RATE_LIMITS_ENABLED = True


def test_the_call_above_the_limit_is_refused_with_a_waiting_time() -> None:
    for _ in range(3):
        rate_limit("bob", "join", "3/h/key")
    with pytest.raises(AppError) as error:
        rate_limit("bob", "join", "3/h/key")
    assert error.value.code == ErrorCode.TOO_MANY_REQUESTS
    assert error.value.retry_after
    assert 0 < error.value.retry_after <= 3600


def test_others_and_other_scopes_are_counted_apart() -> None:
    rate_limit("bob", "join", "1/h/key")
    rate_limit("charlie", "join", "1/h/key")
    rate_limit("bob", "pass", "1/h/key")


def test_a_new_window_starts_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("web.core.ratelimit.time.time", lambda: 1000.0)
    rate_limit("bob", "join", "1/m/key")
    monkeypatch.setattr("web.core.ratelimit.time.time", lambda: 1061.0)
    rate_limit("bob", "join", "1/m/key")


def test_requests_are_counted_by_address_or_by_user(rf: RequestFactory) -> None:
    first, second = rf.get("/"), rf.get("/", REMOTE_ADDR="10.0.0.2")
    first.user = second.user = AnonymousUser()
    rate_limit(first, "page", "1/h/ip")
    rate_limit(second, "page", "1/h/ip")
    with pytest.raises(AppError):
        rate_limit(second, "page", "1/h/ip")
    rate_limit(first, "form", "1/h/user")
    with pytest.raises(AppError):
        rate_limit(first, "form", "1/h/user")


def test_a_forwarded_address_counts_only_behind_a_proxy(rf: RequestFactory, settings: Any) -> None:
    request = rf.get("/", headers={"X-Forwarded-For": "6.6.6.6, 10.1.1.1"})
    settings.BEHIND_PROXY = False
    assert client_address(request) == "127.0.0.1"
    settings.BEHIND_PROXY = True
    assert client_address(request) == "10.1.1.1"  # what the caller wrote before it is no proof


def test_without_redis_nobody_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **options: object) -> None:
        raise RedisConnectionError("away")

    monkeypatch.setattr(cache, "add", broken)
    for _ in range(5):
        rate_limit("bob", "join", "1/h/key")


def test_limits_can_be_switched_off(settings: Any) -> None:
    settings.RATE_LIMITS_ENABLED = False
    for _ in range(5):
        rate_limit("bob", "join", "1/h/key")
