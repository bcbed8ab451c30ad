"""Django's admin shows our rows and changes none of them."""

import pytest
from django.test import Client

from tests.factories import device_make, token_make, user_make
from web.accounts.models import ApiToken, Device
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


def test_an_organiser_without_rights_sees_nothing_there(client: Client) -> None:
    client.force_login(user_make("alice", is_staff=True))
    assert client.get("/admin/core/auditentry/").status_code == 403
