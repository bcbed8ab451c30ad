"""Django's admin shows our rows and changes none of them."""

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import device_make, token_make, user_make
from web.accounts.models import ApiToken, Device, User
from web.core.models import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("page", ["accounts/device", "accounts/apitoken", "core/auditentry"])
def test_rows_can_be_read_and_not_changed(client: Client, page: str) -> None:
    root = user_make("rooty", is_staff=True, is_superuser=True)
    device, _ = device_make(root)
    token = token_make(root, device=device)
    client.force_login(root)
    assert client.get(f"/admin/{page}/").status_code == 200
    rows = {"device": Device, "apitoken": ApiToken, "auditentry": AuditEntry}
    key = rows[page.split("/")[1]].objects.get().pk
    detail = client.get(f"/admin/{page}/{key}/change/")
    assert detail.status_code == 200
    assert "_save" not in detail.content.decode()
    assert token not in detail.content.decode()
    assert client.get(f"/admin/{page}/add/").status_code == 403
    assert client.post(f"/admin/{page}/{key}/delete/", {"post": "yes"}).status_code == 403


def form_of(user: User, **changes: str) -> dict[str, str]:
    """Return the admin's form for an account as the browser would send it."""
    joined = timezone.localtime(user.date_joined)
    data = {"username": user.username, "email": user.email, "is_active": "on",
            "first_name": "", "last_name": "", "date_joined_0": f"{joined:%Y-%m-%d}",
            "date_joined_1": f"{joined:%H:%M:%S}"}  # fmt: skip
    return data | changes


def test_what_an_admin_changes_of_an_account_is_in_the_audit_log(client: Client, bob: User) -> None:
    client.force_login(user_make("rooty", is_staff=True, is_superuser=True))
    page = f"/admin/accounts/user/{bob.pk}/"
    client.post(f"{page}change/", form_of(bob, is_staff="on", email="new@example.org"))
    bob.refresh_from_db()
    assert bob.is_staff
    entry = AuditEntry.objects.get(code="user.changed")
    assert (entry.actor_name, entry.target) == ("rooty", "bob")
    assert entry.data["before"]["is_staff"] is False
    assert entry.data["after"]["is_staff"] is True
    assert "email" in entry.data["after"], "that it was changed is said"
    assert "example.org" not in str(entry.data), "what it is would be kept for ever"
    client.post(f"{page}change/", form_of(bob, is_staff="on"))
    assert AuditEntry.objects.filter(code="user.changed").count() == 1, "nothing was changed"
    secret = "a new long password"
    data = {"password1": secret, "password2": secret, "usable_password": "true"}
    client.post(f"{page}password/", data | {"password2": "other"})
    assert not AuditEntry.objects.filter(code="user.password.changed").exists()
    client.post(f"{page}password/", data)
    bob.refresh_from_db()
    assert bob.check_password(secret)
    assert AuditEntry.objects.get(code="user.password.changed").target == "bob"
    client.post("/admin/accounts/user/add/", data | {"username": "dora"})
    made = AuditEntry.objects.get(code="user.registered", target="dora")
    assert made.actor_name == "rooty"
    told = str(list(AuditEntry.objects.values_list("data", flat=True)))
    assert secret not in told
    assert bob.password not in told


def test_no_account_is_deleted_in_the_admin(client: Client, bob: User) -> None:
    client.force_login(user_make("rooty", is_staff=True, is_superuser=True))
    page = f"/admin/accounts/user/{bob.pk}/delete/"
    assert client.post(page, {"post": "yes"}).status_code == 403
    data = {"action": "delete_selected", "_selected_action": str(bob.pk), "post": "yes"}
    client.post("/admin/accounts/user/", data)
    assert User.objects.filter(pk=bob.pk).exists()


def test_an_organiser_without_rights_sees_nothing_there(client: Client) -> None:
    client.force_login(user_make("alice", is_staff=True))
    assert client.get("/admin/core/auditentry/").status_code == 403
