"""One's own account and machines, and who may touch them."""

from typing import Any

import pytest
from django.test import Client

from tests.factories import bearer, device_make, token_make
from tests.factories_runs import run_make, swarm_make
from training.protocol.api import DeviceOut
from web.accounts.models import Device, User
from web.core.models import AuditEntry

pytestmark = pytest.mark.django_db
ME = "/api/v1/me/"
DEVICES = f"{ME}devices/"


def test_who_am_i(client: Client, bob: User) -> None:
    device, _ = device_make(bob)
    body = client.get(ME, headers=bearer(token_make(bob, device=device))).json()
    assert body["username"] == "bob"
    assert body["device"] == device.public_id
    assert body["is_organiser"] is False
    assert body["scopes"] == ["device", "read"]


def test_my_machines_are_listed_with_their_runs(client: Client, alice: User, bob: User) -> None:
    swarm_make(run_make(alice), 1, users=[bob])
    device_make(bob, "spare", revoked_at="2026-01-01T00:00Z")
    client.force_login(bob)
    body = client.get(DEVICES).json()
    found = [DeviceOut.model_validate(item) for item in body["items"]]
    assert body["next"] is None
    assert [(device.revoked, device.runs) for device in found] == [(True, []), (False, ["demo"])]


def test_a_long_list_comes_in_pages(client: Client, bob: User) -> None:
    made = [device_make(bob, f"m{i}")[0].public_id for i in range(5)]
    client.force_login(bob)
    seen, cursor = [], ""
    for _ in range(3):
        body = client.get(DEVICES, {"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        seen += [item["id"] for item in body["items"]]
        cursor = body["next"]
    assert cursor is None
    assert seen == made[::-1]


def test_a_machine_is_renamed(client: Client, bob: User) -> None:
    device, _ = device_make(bob)
    client.force_login(bob)
    path = f"{DEVICES}{device.public_id}/"
    response = client.patch(path, {"name": " my  laptop "}, "application/json")
    assert response.json()["name"] == "my laptop"
    for bad in ({"name": ""}, {"name": "   "}, {"name": "x" * 81}, {}):
        assert client.patch(path, bad, "application/json").status_code == 422
    assert Device.objects.get().name == "my laptop"


def test_a_machine_is_revoked(client: Client, bob: User) -> None:
    device, _ = device_make(bob)
    token = token_make(bob, device=device)
    client.force_login(bob)
    response = client.delete(f"{DEVICES}{device.public_id}/")
    assert (response.status_code, response.content) == (204, b"")
    client.logout()
    assert client.get(ME, headers=bearer(token)).json()["code"] == "device_revoked"
    assert AuditEntry.objects.filter(code="device.revoked", actor_name="bob").exists()


def test_a_bound_token_manages_its_own_machine_only(client: Client, bob: User) -> None:
    own, _ = device_make(bob)
    other, _ = device_make(bob)
    headers = bearer(token_make(bob, device=own))
    refused = client.delete(f"{DEVICES}{other.public_id}/", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert client.delete(f"{DEVICES}{own.public_id}/", headers=headers).status_code == 204


ACCESS = [
    # method, path, then the status for nobody, alice, bob (the owner), charlie, mallory
    ("get", ME, (401, 200, 200, 200, 403)),
    ("get", DEVICES, (401, 200, 200, 200, 403)),
    ("patch", f"{DEVICES}ID/", (401, 404, 200, 404, 403)),
    ("delete", f"{DEVICES}ID/", (401, 404, 204, 404, 403)),
    ("get", "/api/v1/keys/", (200, 200, 200, 200, 200)),
    ("get", f"/api/v1/artifacts/{'0' * 64}/", (404, 404, 404, 404, 404)),
    ("get", "/healthz", (200, 200, 200, 200, 200)),
    ("get", "/metrics", (200, 200, 200, 200, 200)),
]


@pytest.mark.parametrize(("method", "path", "expected"), ACCESS, ids=lambda v: str(v)[:40])
@pytest.mark.parametrize("by", ["token", "session"])
def test_who_may_do_what(
    by: str, method: str, path: str, expected: tuple[int, ...], request: pytest.FixtureRequest
) -> None:
    people = [request.getfixturevalue(name) for name in ("alice", "bob", "charlie", "mallory")]
    device, _ = device_make(people[1])
    for person, status in zip([None, *people], expected, strict=True):
        client, headers = Client(), {}
        if person is not None and by == "token":
            headers = bearer(token_make(person))
        elif person is not None:
            client.force_login(person)
        if by == "session" and person is people[3]:
            status = 403  # the session of a banned account ends at any page
        options: dict[str, Any] = {"headers": headers}
        if method == "patch":
            options |= {"data": {"name": "n"}, "content_type": "application/json"}
        response = getattr(client, method)(path.replace("ID", device.public_id), **options)
        assert response.status_code == status, (person, response.content)
