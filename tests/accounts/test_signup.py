"""People sign up, log in, log out and get a new password."""

import re

import pytest
from django.core import mail
from django.test import Client

from tests.factories import PASSWORD, user_make
from web.accounts.models import User
from web.accounts.usernames import skeleton, username_is_reserved, username_shape_ok
from web.core.models import AuditEntry

SIGNUP = "/accounts/signup/"
LOGIN = "/accounts/login/"


def sign_up(client: Client, username: str, email: str = "bob@example.org") -> int:
    form = {"email": email, "username": username, "password1": PASSWORD}
    return client.post(SIGNUP, form).status_code


def is_logged_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


@pytest.mark.django_db
def test_a_person_signs_up_logs_out_and_logs_in_again(client: Client) -> None:
    assert sign_up(client, "Bob") == 302
    assert is_logged_in(client)
    bob = User.objects.get()
    assert (bob.username, bob.email, bob.is_staff) == ("bob", "bob@example.org", False)
    assert AuditEntry.objects.get().code == "user.registered"
    client.post("/accounts/logout/")
    assert not is_logged_in(client)
    for login in ("bob", "bob@example.org"):
        client.logout()
        client.post(LOGIN, {"login": login, "password": PASSWORD})
        assert is_logged_in(client), login


@pytest.mark.django_db
def test_a_wrong_password_does_not_log_in(client: Client, bob: User) -> None:
    response = client.post(LOGIN, {"login": "bob", "password": "wrong"})
    assert response.status_code == 200
    assert not is_logged_in(client)


@pytest.mark.django_db
def test_logging_out_by_a_link_of_another_site_does_nothing(client: Client, bob: User) -> None:
    client.force_login(bob)
    client.get("/accounts/logout/")
    assert is_logged_in(client)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "username",
    [
        *"admin Adm1n site be-eyard beeyard service-x trainer_1 a bob@x -bob me alyce".split(),  # noqa: SIM905
        "x" * 31,
        "bob smith",
        "b\u043eb",
        "a\u0301bc",
    ],
)
def test_names_of_the_site_and_misleading_ones_are_refused(client: Client, username: str) -> None:
    user_make("alyce", is_staff=True)
    assert sign_up(client, username) == 200
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_a_name_that_looks_like_an_organisers_is_refused(client: Client, alice: User) -> None:
    assert sign_up(client, "a1ice") == 200
    assert sign_up(client, "al-ice") == 200
    assert not User.objects.exclude(username="alice").exists()


@pytest.mark.parametrize("username", ["bob", "bob-2", "x9", "anna_lena", "b" * 30])
def test_ordinary_names_are_fine(username: str) -> None:
    assert username_shape_ok(username)
    assert not username_is_reserved(username)


def test_look_alikes_have_the_same_skeleton() -> None:
    assert skeleton("r00t") == skeleton("root")
    assert skeleton("adrnin") == skeleton("admin")


@pytest.mark.django_db
def test_a_forgotten_password_is_replaced_through_the_mail(client: Client, bob: User) -> None:
    client.post("/accounts/password/reset/", {"email": bob.email})
    link = re.search(r"http://\S+(/accounts/password/reset/key/\S+)", str(mail.outbox[0].body))
    assert link
    form_page = client.get(link[1], follow=True)
    path = form_page.redirect_chain[-1][0]
    new = "another fine password"
    client.post(path, {"password1": new, "password2": new})
    client.post(LOGIN, {"login": "bob", "password": new})
    assert is_logged_in(client)


@pytest.mark.django_db
def test_asking_for_an_unknown_mail_address_tells_nothing(client: Client) -> None:
    response = client.post("/accounts/password/reset/", {"email": "nobody@example.org"})
    assert response.status_code == 302


@pytest.mark.django_db
def test_a_banned_person_is_told_so_only_with_the_right_password(
    client: Client, mallory: User
) -> None:
    wrong = client.post(LOGIN, {"login": "mallory", "password": "wrong"})
    assert "suspended" not in wrong.content.decode()
    right = client.post(LOGIN, {"login": "mallory", "password": PASSWORD})
    assert right.status_code == 403
    assert "suspended: spam" in right.content.decode()
    assert not is_logged_in(client)
