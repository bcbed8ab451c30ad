"""Who gets in: every kind of credential against every kind of call."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client, RequestFactory

from tests.factories import bearer, device_make, token_make
from tests.factories_runs import run_make
from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.api.auth import coordinator_auth, device_auth
from web.core.errors import AppError

pytestmark = pytest.mark.django_db
ME = "/api/v1/me/"


def refusal(auth: Any, header: str | None) -> ErrorCode:
    headers = {"Authorization": header} if header is not None else {}
    with pytest.raises(AppError) as error:
        auth(RequestFactory().get("/", headers=headers))
    return error.value.code


def test_a_device_token_opens_device_calls_and_no_coordinators(bob: User) -> None:
    header = f"Bearer {token_make(bob)}"
    request = RequestFactory().get("/", headers={"Authorization": header})
    assert device_auth(request).user == bob
    assert request.user == bob
    assert refusal(coordinator_auth, header) == ErrorCode.FORBIDDEN


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (None, ErrorCode.NOT_AUTHENTICATED),
        ("Bearer", ErrorCode.TOKEN_INVALID),
        ("Bearer ", ErrorCode.TOKEN_INVALID),
        ("Basic Ym9iOmI=", ErrorCode.TOKEN_INVALID),
        ("Bearer by_nonsense", ErrorCode.TOKEN_INVALID),
        ("Bearer nonsense", ErrorCode.TOKEN_INVALID),
        ("Bearer by_\u00e9\u00ff", ErrorCode.TOKEN_INVALID),
        ("Bearer " + "x" * 10_000, ErrorCode.TOKEN_INVALID),
    ],
)
def test_bad_headers_are_refused(header: str | None, code: ErrorCode) -> None:
    assert refusal(device_auth, header) == code


def test_a_read_token_reads_and_changes_nothing(client: Client, bob: User) -> None:
    headers = bearer(token_make(bob, "read"))
    device, _ = device_make(bob)
    assert client.get(ME, headers=headers).json()["scopes"] == ["read"]
    response = client.delete(f"{ME}devices/{device.public_id}/", headers=headers)
    assert (response.status_code, response.json()["code"]) == (403, "forbidden")
    assert refusal(device_auth, headers["Authorization"]) == ErrorCode.FORBIDDEN


def test_a_token_of_one_run_is_refused_by_another(client: Client, alice: User, bob: User) -> None:
    run_make(alice, slug="one")
    run_make(alice, slug="two")
    headers = bearer(token_make(bob, run_slug="one"))
    assert client.get("/api/v1/runs/one/challenge/", headers=headers).status_code == 200
    response = client.get("/api/v1/runs/two/challenge/", headers=headers)
    assert (response.status_code, response.json()["code"]) == (403, "forbidden")
    assert client.get(ME, headers=headers).json()["run"] == "one"


def test_a_public_call_takes_anybody_but_no_bad_token(client: Client, bob: User) -> None:
    assert client.get("/api/v1/runs/").status_code == 200
    assert client.get("/api/v1/runs/", headers=bearer(token_make(bob))).status_code == 200
    response = client.get("/api/v1/runs/", headers=bearer("by_gone"))
    assert (response.status_code, response.json()["code"]) == (401, "token_invalid")


def test_expired_and_revoked_and_banned_are_told_apart(
    client: Client, bob: User, mallory: User
) -> None:
    device, _ = device_make(bob, revoked_at="2026-01-01T00:00Z")
    cases = {
        token_make(bob, lifetime=timedelta(seconds=-1)): (401, "token_expired"),
        token_make(bob, device=device): (403, "device_revoked"),
        token_make(mallory): (403, "banned"),
        "by_unknown": (401, "token_invalid"),
    }
    for token, expected in cases.items():
        response = client.get(ME, headers=bearer(token))
        assert (response.status_code, response.json()["code"]) == expected
        assert response.json()["remedy"]


def test_a_refusal_says_how_to_log_in(client: Client) -> None:
    response = client.get(ME)
    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_a_session_may_read_but_changes_only_with_the_csrf_token(bob: User) -> None:
    device, _ = device_make(bob)
    path = f"{ME}devices/{device.public_id}/"
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(bob)
    assert browser.get(ME).json()["scopes"] == ["read", "session"]
    response = browser.delete(path)
    assert (response.status_code, response.json()["code"]) == (403, "csrf_failed")
    browser.get("/accounts/password/change/")
    token = browser.cookies["csrftoken"].value
    assert browser.delete(path, headers={"X-CSRFToken": token}).status_code == 204


def test_a_token_needs_no_csrf_token(bob: User) -> None:
    device, _ = device_make(bob)
    browser = Client(enforce_csrf_checks=True)
    path = f"{ME}devices/{device.public_id}/"
    assert browser.delete(path, headers=bearer(token_make(bob))).status_code == 204
