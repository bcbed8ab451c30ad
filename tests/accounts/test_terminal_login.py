"""Terminal login (RFC 8628), end to end through HTTP."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from allauth.idp.oidc.models import Client as OAuthClient
from allauth.idp.oidc.models import Token
from django.conf import settings
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from tests.factories import bearer
from training.protocol.keys import key_generate, public_jwk
from training.protocol.names import (
    DEVICE_CODE_PATH,
    OAUTH_CLIENT_ID,
    OAUTH_SCOPES,
    REVOKE_PATH,
    TOKEN_PATH,
)
from web.accounts.credentials import credential_of_token
from web.accounts.models import Device, User
from web.accounts.services import device_bind, device_revoke, user_ban

CONFIRM = "/identity/o/device"
ME = "/api/v1/me/"
GRANT = "urn:ietf:params:oauth:grant-type:device_code"

pytestmark = pytest.mark.django_db


def form_post(path: str, form: dict[str, str]) -> Any:
    return Client().post(path, urlencode(form), "application/x-www-form-urlencoded")


def code_request() -> dict[str, Any]:
    form = {"client_id": OAUTH_CLIENT_ID, "scope": OAUTH_SCOPES}
    response = form_post(DEVICE_CODE_PATH, form)
    assert response.status_code == 200, response.content
    return dict(response.json())


def poll(code: dict[str, Any], *, patient: bool = True) -> tuple[int, dict[str, Any]]:
    if patient:  # as if the interval had passed
        key = f"allauth.idp.oidc.device_code[{code['device_code']}]"
        if cache.get(key):
            cache.set(key, cache.get(key) | {"last_poll_at": 0})
    form = {"grant_type": GRANT, "device_code": code["device_code"], "client_id": OAUTH_CLIENT_ID}
    response = form_post(TOKEN_PATH, form)
    return response.status_code, response.json()


def confirm(user: User, code: dict[str, Any], action: str = "confirm") -> int:
    browser = Client()
    browser.force_login(user)
    return browser.post(f"{CONFIRM}?code={code['user_code']}", {"action": action}).status_code


def log_in(user: User) -> dict[str, Any]:
    code = code_request()
    assert confirm(user, code) == 200
    status, tokens = poll(code)
    assert status == 200, tokens
    return tokens


def renew(tokens: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    form = {
        "grant_type": "refresh_token",
        "refresh_token": tokens["refresh_token"],
        "client_id": OAUTH_CLIENT_ID,
    }
    response = form_post(TOKEN_PATH, form)
    return response.status_code, response.json()


def call(tokens: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    response = Client().get(ME, headers=bearer(tokens["access_token"]))
    return response.status_code, response.json()


def link(user: User, tokens: dict[str, Any], key: Any = None) -> Device:
    now = timezone.now()
    return device_bind(
        user,
        jwk=public_jwk(key or key_generate()),
        name="laptop",
        hardware={"device": "cpu"},
        trainer_version="0.1.0",
        credential=credential_of_token(tokens["access_token"], now),
        now=now,
    )


def test_a_terminal_logs_in_with_a_code_confirmed_on_the_page(bob: User) -> None:
    code = code_request()
    assert code["verification_uri"].endswith(CONFIRM)
    assert poll(code)[1]["error"] == "authorization_pending"
    assert poll(code, patient=False)[1]["error"] == "slow_down"
    assert confirm(bob, code) == 200
    status, tokens = poll(code)
    assert status == 200
    assert {"access_token", "refresh_token", "expires_in"} <= set(tokens)
    assert call(tokens) == (200, call(tokens)[1])
    assert call(tokens)[1]["username"] == "bob"
    assert poll(code)[0] == 400  # a code works once


def test_the_page_says_who_asks_and_a_stranger_has_to_log_in_first(bob: User) -> None:
    code = code_request()
    path = f"{CONFIRM}?code={code['user_code']}"
    assert Client().get(path).headers["Location"].startswith("/accounts/login/")
    browser = Client()
    browser.force_login(bob)
    page = browser.get(path).content.decode()
    assert code["user_code"] in page
    assert "Beeyard trainer" in page


def test_a_denied_code_gives_no_token(bob: User) -> None:
    code = code_request()
    confirm(bob, code, "deny")
    status, answer = poll(code)
    assert (status, answer["error"]) == (400, "access_denied")


def test_a_code_that_expired_is_refused(bob: User) -> None:
    code = code_request()
    cache.clear()
    assert poll(code)[1]["error"] == "invalid_grant"


def test_a_foreign_page_cannot_confirm_a_code_for_its_visitor(bob: User) -> None:
    code = code_request()
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(bob)
    path = f"{CONFIRM}?code={code['user_code']}"
    response = browser.post(path, {"action": "confirm"})
    assert response.status_code == 403
    assert poll(code)[1]["error"] == "authorization_pending"
    token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', browser.get(path).content.decode())
    assert token
    own_page = browser.post(path, {"action": "confirm", "csrfmiddlewaretoken": token[1]})
    assert own_page.status_code == 200


def test_a_renewed_login_stays_bound_to_its_device(bob: User) -> None:
    old = log_in(bob)
    device = link(bob, old)
    status, new = renew(old)
    assert status == 200
    assert new["refresh_token"] != old["refresh_token"]
    assert renew(old)[0] == 400  # refresh tokens rotate
    assert call(new)[1]["device"] == device.public_id
    assert call(old)[0] == 200  # it lives until it expires: calls under way do not break


def test_an_access_token_expires(bob: User) -> None:
    tokens = log_in(bob)
    Token.objects.filter(type=Token.Type.ACCESS_TOKEN).update(
        expires_at=timezone.now() - timedelta(seconds=1)
    )
    status, problem = call(tokens)
    assert (status, problem["code"]) == (401, "token_expired")
    assert call(renew(tokens)[1])[0] == 200


def test_revoking_a_device_ends_its_access_and_refresh_tokens(bob: User) -> None:
    first, other = log_in(bob), log_in(bob)
    device = link(bob, first)
    link(bob, other)
    renewed = renew(first)[1]
    device_revoke(bob, device)
    for tokens in (first, renewed):
        status, problem = call(tokens)
        assert (status, problem["code"]) == (403, "device_revoked")
        assert renew(tokens)[0] == 400
    assert call(other)[0] == 200
    userinfo = Client().get("/identity/o/api/userinfo", headers=bearer(renewed["access_token"]))
    assert userinfo.status_code == 401


def test_a_revoked_machine_comes_back_by_a_new_login(bob: User) -> None:
    key = key_generate()
    tokens = log_in(bob)
    device = link(bob, tokens, key)
    device_revoke(bob, device)
    again = log_in(bob)
    assert link(bob, again, key) == device
    assert call(again)[1]["device"] == device.public_id
    assert call(tokens)[0] == 401


def test_a_second_login_of_a_machine_replaces_the_first(bob: User) -> None:
    key = key_generate()
    first, second = log_in(bob), log_in(bob)
    link(bob, first, key)
    link(bob, second, key)
    assert call(second)[0] == 200
    assert call(first)[0] == 401
    assert renew(first)[0] == 400


def test_logging_out_at_the_terminal_ends_the_login(bob: User) -> None:
    tokens = log_in(bob)
    form = {"token": tokens["refresh_token"], "client_id": OAUTH_CLIENT_ID}
    assert form_post(REVOKE_PATH, form).status_code == 200
    assert call(tokens)[0] == 401
    assert renew(tokens)[0] == 400


def test_a_ban_ends_terminal_logins(alice: User, bob: User) -> None:
    tokens = log_in(bob)
    user_ban(alice, bob, "spam")
    status, problem = call(tokens)
    assert (status, problem["code"]) == (403, "banned")
    assert renew(tokens)[0] == 400


def test_a_code_confirmed_before_a_ban_gives_nothing_that_works(alice: User, bob: User) -> None:
    code = code_request()
    confirm(bob, code)
    user_ban(alice, bob, "spam")
    _, tokens = poll(code)
    assert call(tokens)[1]["code"] == "banned"


def test_the_trainers_client_can_do_nothing_but_terminal_login(bob: User) -> None:
    client = OAuthClient.objects.get(id=OAUTH_CLIENT_ID)
    assert client.type == OAuthClient.Type.PUBLIC
    assert set(client.get_grant_types()) == {GRANT, "refresh_token"}
    assert client.get_scopes() == OAUTH_SCOPES.split()
    form = {"grant_type": "client_credentials", "client_id": OAUTH_CLIENT_ID}
    assert form_post(TOKEN_PATH, form).status_code in (400, 401)


def test_the_identity_provider_publishes_its_key_and_our_address() -> None:
    configuration = Client().get("/.well-known/openid-configuration").json()
    assert configuration["issuer"] == settings.PUBLIC_URL
    keys = Client().get("/.well-known/jwks.json").json()["keys"]
    assert [key["kty"] for key in keys] == ["RSA"]
    assert settings.OIDC_KEY_FILE.stat().st_mode & 0o777 == 0o600


@pytest.mark.redis
def test_codes_are_shared_through_redis(bob: User, settings: Any, redis_server: str) -> None:
    backend = "django.core.cache.backends.redis.RedisCache"
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": redis_server}}
    assert call(log_in(bob))[0] == 200
    cache.clear()
