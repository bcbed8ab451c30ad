"""The doors of the site: redirects, mailed links, sessions, limits, headers, and what is logged."""

import logging
import re
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from tests.factories import PASSWORD
from tests.factories_runs import run_make
from web.accounts.models import User
from web.core.requestid import RefusalFilter

pytestmark = pytest.mark.django_db
ABROAD = (
    "//evil.example/", "https://evil.example/", "https:evil.example", "/\\evil.example",
    "///evil.example", "javascript:alert(1)", "http://[", "\thttps://evil.example",
    "http://localhost:9/", "http://127.0.0.1.evil.example/", "data:text/html,x",
)  # fmt: skip


@pytest.fixture
def limits(settings: Any) -> None:
    settings.RATE_LIMITS_ENABLED = True
    settings.ACCOUNT_RATE_LIMITS = {}


@pytest.mark.parametrize("target", ABROAD)
def test_nobody_is_sent_abroad_after_logging_in(client: Client, bob: User, target: str) -> None:
    form = {"login": "bob", "password": PASSWORD, "next": target}
    response = client.post("/accounts/login/", form)
    assert (response.status_code, response["Location"]) == (302, "/")
    assert client.post("/accounts/logout/", {"next": target})["Location"] == "/"


def test_a_mailed_link_is_at_the_public_address_whatever_host_was_asked(
    client: Client, bob: User, settings: Any
) -> None:
    settings.PUBLIC_URL = "https://bees.example"
    settings.ALLOWED_HOSTS = ["localhost", "bees.example"]
    for host in ("localhost:666", "bees.example"):
        client.post("/accounts/password/reset/", {"email": bob.email}, headers={"Host": host})
        (link,) = re.findall(r"https?://\S+/key/\S+", str(mail.outbox[-1].body))
        assert link.startswith("https://bees.example/accounts/password/reset/key/")


def test_a_log_in_changes_the_session(client: Client, bob: User) -> None:
    client.get("/accounts/login/")
    client.cookies["sessionid"] = "a" * 32
    client.post("/accounts/login/", {"login": "bob", "password": PASSWORD})
    assert client.cookies["sessionid"].value != "a" * 32
    assert client.cookies["sessionid"]["httponly"]
    assert client.cookies["sessionid"]["samesite"] == "Lax"


def test_wrong_names_and_wrong_passwords_sound_the_same(client: Client, bob: User) -> None:
    answers = set()
    for name in ("bob", "nobody-here"):
        page = client.post("/accounts/login/", {"login": name, "password": "wrong"}).content
        answers.add(re.sub(rb'name="csrfmiddlewaretoken"[^>]*|value="[^"]*"', b"", page))
    assert len(answers) == 1
    sent = [client.post("/accounts/password/reset/", {"email": f"{name}@example.org"})
            for name in ("bob", "nobody-here")]  # fmt: skip
    assert sent[0]["Location"] == sent[1]["Location"]


@pytest.mark.usefixtures("limits")
def test_a_guesser_is_stopped_with_a_page_that_says_what_to_do(client: Client, bob: User) -> None:
    for _ in range(40):
        response = client.post("/accounts/login/", {"login": "bob", "password": "guess"})
        if response.status_code == 429:
            break
    assert response.status_code == 429
    assert int(response["Retry-After"]) > 0
    assert b"Wait as long as" in response.content
    assert b"<html lang" in response.content


@pytest.mark.usefixtures("limits")
def test_nobody_gets_device_codes_without_end(client: Client) -> None:
    form = "client_id=beeyard-trainer&scope=openid"
    kind = "application/x-www-form-urlencoded"
    answers = [client.post("/identity/o/api/device/code", form, kind) for _ in range(31)]
    assert [answer.status_code for answer in answers] == [200] * 30 + [429]
    assert answers[-1].json()["remedy"]
    assert int(answers[-1]["Retry-After"]) > 0


def test_what_a_person_sees_is_for_no_shared_cache(client: Client, alice: User, bob: User) -> None:
    run_make(alice)
    client.force_login(bob)
    for page in ("/", "/account/", "/devices/", "/runs/demo/", "/api/v1/me/"):
        control = client.get(page)["Cache-Control"]
        assert "private" in control or "no-store" in control, page


@pytest.mark.parametrize("page", ["/", "/accounts/login/", "/nowhere/", "/api/v1/runs/", "/trust/"])
def test_every_answer_has_the_headers_that_keep_others_out(client: Client, page: str) -> None:
    headers = client.get(page).headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin"


def test_another_host_is_logged_without_a_trace(caplog: Any) -> None:
    caplog.handler.addFilter(RefusalFilter())
    Client(raise_request_exception=False).get("/", headers={"Host": "evil.example"})
    (record,) = (r for r in caplog.records if r.name == "django.security.DisallowedHost")
    assert record.levelno >= logging.WARNING
    assert record.exc_info is None


def test_a_line_of_the_log_cannot_be_made_up(caplog: Any, monkeypatch: Any) -> None:
    def broken(*args: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("web.api.public.live_state", broken)
    Client(raise_request_exception=False).get("/api/v1/runs/x%0AERROR made up/state/")
    assert "\nERROR made up" not in caplog.text
