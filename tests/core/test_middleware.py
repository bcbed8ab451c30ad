"""Every answer carries its id and its headers; errors are pages or problems, never traces."""

import logging
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path
from redis.exceptions import ConnectionError as RedisConnectionError

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core import failures
from web.core.errors import AppError
from web.core.requestid import RequestIdFilter, request_id


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("secret detail")


def refused(request: HttpRequest) -> HttpResponse:
    raise AppError(ErrorCode.RUN_NOT_OPEN, "It is <b>paused</b>.")


def hurried(request: HttpRequest) -> HttpResponse:
    raise AppError(ErrorCode.TOO_MANY_REQUESTS, retry_after=2.5)


def cacheless(request: HttpRequest) -> HttpResponse:
    raise RedisConnectionError("10.0.0.7 is away")


def locked(request: HttpRequest) -> HttpResponse:
    raise OperationalError("database is locked")


def denied(request: HttpRequest) -> HttpResponse:
    raise PermissionDenied


def identified(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request_id())


_views = [
    path(f"{view.__name__}/", view)
    for view in (broken, refused, hurried, denied, identified, cacheless, locked)
]
urlpatterns = [
    *_views,
    path("api/", include(_views)),
    path("", include("web.project.urls")),
]
handler400 = "web.core.failures.bad_request"
handler403 = "web.core.failures.permission_denied"
handler404 = "web.core.failures.page_not_found"
handler500 = "web.core.failures.server_error"

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]


@pytest.fixture
def browser() -> Client:
    return Client(raise_request_exception=False)


@pytest.mark.parametrize(
    ("address", "status", "words"),
    [
        ("/broken/", 500, "Something broke on our side"),
        ("/refused/", 409, "&lt;b&gt;paused"),
        ("/hurried/", 429, "Too many requests"),
        ("/cacheless/", 503, "The cache is away"),
        ("/locked/", 503, "The database is away"),
        ("/denied/", 403, "You may not do this"),
        ("/nowhere/", 404, "Nothing is here"),
    ],
)
def test_errors_are_pages_with_a_sentence(
    browser: Client, address: str, status: int, words: str
) -> None:
    response = browser.get(address)
    text = response.content.decode()
    assert response.status_code == status
    assert words in text
    assert "secret detail" not in text
    assert "10.0.0.7" not in text
    assert "<b>paused" not in text
    assert "Content-Security-Policy" in response.headers


@pytest.mark.parametrize(
    ("address", "status", "code"),
    [
        ("/api/broken/", 500, "internal_error"),
        ("/api/refused/", 409, "run_not_open"),
        ("/api/hurried/", 429, "too_many_requests"),
        ("/api/cacheless/", 503, "service_unavailable"),
        ("/api/locked/", 503, "service_unavailable"),
        ("/api/denied/", 403, "forbidden"),
        ("/api/nowhere/", 404, "not_found"),
    ],
)
def test_errors_below_api_are_problems(
    browser: Client, address: str, status: int, code: str
) -> None:
    response = browser.get(address)
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == code
    assert "secret detail" not in response.content.decode()


def test_a_waiting_time_is_rounded_up(browser: Client) -> None:
    assert browser.get("/hurried/")["Retry-After"] == "3"
    assert browser.get("/api/hurried/")["Retry-After"] == "3"


def test_a_wrong_host_gets_a_plain_refusal(browser: Client) -> None:
    response = browser.get("/", headers={"host": "evil.example.org"})
    assert response.status_code == 400


def test_an_error_page_comes_even_without_templates(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_template(names: list[str]) -> None:
        raise RuntimeError("templates are gone")

    monkeypatch.setattr(failures, "select_template", no_template)
    response = browser.get("/refused/")
    assert response.status_code == 409
    assert "Watch the run" in response.content.decode()


def test_each_request_has_an_id_in_its_answer_and_in_the_log(browser: Client) -> None:
    first, second = browser.get("/identified/"), browser.get("/identified/")
    assert first["X-Request-Id"] == first.content.decode()
    assert first["X-Request-Id"] != second["X-Request-Id"]
    record = logging.LogRecord("x", logging.INFO, "f", 1, "m", (), None)
    assert RequestIdFilter().filter(record)
    assert hasattr(record, "request_id")


def test_an_id_from_outside_counts_only_behind_a_proxy(browser: Client, settings: Any) -> None:
    given = {"X-Request-Id": "abcdefgh-1"}
    assert browser.get("/identified/", headers=given).content != b"abcdefgh-1"
    settings.BEHIND_PROXY = True
    assert browser.get("/identified/", headers=given).content == b"abcdefgh-1"
    bad = {"X-Request-Id": "x\u00e9 <script>"}
    assert b"script" not in browser.get("/identified/", headers=bad).content


def test_browsers_run_only_our_own_files(browser: Client) -> None:
    policy = browser.get("/identified/")["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http:" not in policy


def test_a_banned_session_ends_with_a_clear_page(browser: Client, bob: User) -> None:
    browser.force_login(bob)
    User.objects.filter(pk=bob.pk).update(banned_at="2026-01-01T00:00Z", banned_reason="spam")
    page = browser.get("/identified/")
    assert page.status_code == 403
    assert "suspended: spam" in page.content.decode()
    assert browser.get("/identified/").status_code == 200


def test_a_banned_session_gets_a_problem_from_the_api(browser: Client, mallory: User) -> None:
    browser.force_login(mallory)
    response = browser.get("/api/v1/me/")
    assert (response.status_code, response.json()["code"]) == (403, "banned")
