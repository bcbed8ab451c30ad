"""Sign-up, log-in, mail addresses and terminal login, in our templates."""

import re
from urllib.parse import urlencode

import pytest
from django.core import mail
from django.test import Client

from tests.factories import PASSWORD
from training.protocol.names import DEVICE_CODE_PATH, OAUTH_CLIENT_ID, OAUTH_SCOPES
from web.accounts.models import User


def codes_ask(client: Client) -> dict[str, str]:
    form = urlencode({"client_id": OAUTH_CLIENT_ID, "scope": OAUTH_SCOPES})
    answer = client.post(DEVICE_CODE_PATH, form, "application/x-www-form-urlencoded")
    return dict(answer.json())


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/accounts/login/", "Forgot your password?"),
        ("/accounts/signup/", "Sign up"),
        ("/accounts/password/reset/", "Send the link"),
        ("/accounts/password/reset/done/", "Look at your mail"),
        ("/accounts/password/reset/key/done/", "Your password is changed"),
        ("/accounts/confirm-email/", "Look at your mail"),
        ("/accounts/inactive/", "closed"),
    ],
)
def test_a_visitor_finds_the_entrance_pages(
    path: str, words: str, client: Client, db: None
) -> None:
    text = client.get(path).content.decode()
    assert words in text
    assert "site-head" in text


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/accounts/email/", "E-mail addresses"),
        ("/accounts/password/change/", "Change the password"),
        ("/accounts/logout/", "Log out?"),
        ("/accounts/reauthenticate/", "Confirm that it is you"),
        ("/identity/o/device", "Enter the code shown in your terminal"),
    ],
)
def test_a_member_finds_the_account_pages(path: str, words: str, client: Client, bob: User) -> None:
    client.login(username="bob", password=PASSWORD)
    assert words in client.get(path).content.decode()


def test_signing_up_logs_in_and_goes_back_to_the_page(client: Client, db: None) -> None:
    fields = {"email": "dora@example.org", "username": "dora", "password1": "a-long-secret-1"}
    answer = client.post("/accounts/signup/", fields | {"next": "/trust/"})
    assert answer.status_code == 302
    assert answer["Location"] == "/trust/"
    assert "dora" in client.get("/").content.decode()


def test_mistakes_are_named_beside_their_field(client: Client, bob: User) -> None:
    fields = {"email": "not-an-address", "username": "bob", "password1": "123"}
    text = client.post("/accounts/signup/", fields).content.decode()
    assert text.count('aria-invalid="true"') == 3
    assert text.count('class="field-error"') == 3
    for described in re.findall(r'aria-describedby="([^"]+)"', text):
        for target in described.split():
            assert f'id="{target}"' in text
    wrong = client.post("/accounts/login/", {"login": "bob", "password": "wrong"})
    assert 'role="alert"' in wrong.content.decode()


def test_a_forgotten_password_is_replaced_by_mail(client: Client, bob: User) -> None:
    client.post("/accounts/password/reset/", {"email": bob.email})
    link = re.search(r"/accounts/password/reset/key/\S+", mail.outbox[0].body)
    assert link
    form = client.get(link[0], follow=True)
    assert "Choose a new password" in form.content.decode()
    path = form.request["PATH_INFO"]
    new = {"password1": "another-secret-2", "password2": "another-secret-2"}
    done = client.post(path, new, follow=True)
    assert "Your password is changed" in done.content.decode()
    assert client.login(username="bob", password="another-secret-2")
    again = Client().get(link[0], follow=True)
    assert "works no more" in again.content.decode()


def test_a_terminals_code_is_confirmed_with_what_it_means(client: Client, bob: User) -> None:
    codes = codes_ask(client)
    client.login(username="bob", password=PASSWORD)
    asked = client.get("/identity/o/device", {"code": codes["user_code"]}).content.decode()
    assert codes["user_code"] in asked
    assert "becomes a device of <strong>bob</strong>" in asked
    path = f"/identity/o/device?code={codes['user_code']}"
    done = client.post(path, {"action": "confirm"}).content.decode()
    assert "back to your terminal" in done
    wrong = client.get("/identity/o/device", {"code": "WRONG-CODE"}).content.decode()
    assert 'class="field-error"' in wrong


def test_a_terminals_code_can_be_refused(client: Client, bob: User) -> None:
    codes = codes_ask(client)
    client.login(username="bob", password=PASSWORD)
    path = f"/identity/o/device?code={codes['user_code']}"
    assert "Refused" in client.post(path, {"action": "deny"}).content.decode()
