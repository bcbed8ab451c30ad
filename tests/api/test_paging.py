"""Lists by cursor, and answers that may be kept."""

from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import bearer, device_make, token_make
from training.protocol.errors import ErrorCode
from web.accounts.models import Device, User
from web.api.paging import PageQuery, page_of
from web.core.errors import AppError

pytestmark = pytest.mark.django_db


def names(order: str, limit: int, cursor: str | None = None) -> tuple[list[str], str | None]:
    query = PageQuery(limit=limit, cursor=cursor)
    page = page_of(Device.objects.all(), query, order=order, item=lambda device: device.name)
    return page["items"], page["next"]


@pytest.mark.parametrize("order", ["id", "-id", "created_at", "-created_at", "name", "-name"])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
def test_pages_put_together_are_the_whole_list(bob: User, order: str, limit: int) -> None:
    for name in "cabbbca":
        device_make(bob, name)
    down = "-" if order.startswith("-") else ""
    whole = [device.name for device in Device.objects.order_by(order, f"{down}pk")]
    found, cursor = names(order, limit)
    while cursor:
        more, cursor = names(order, limit, cursor)
        found += more
    assert found == whole


def test_rows_added_meanwhile_shift_nothing(bob: User) -> None:
    for name in "abcd":
        device_make(bob, name)
    first, cursor = names("-id", 2)
    device_make(bob, "new")
    second, _ = names("-id", 2, cursor)
    assert first + second == ["d", "c", "b", "a"]


@pytest.mark.parametrize("order", ["-id", "-created_at"])
@given(
    cursor=st.text(max_size=60)
    | st.sampled_from(["W10", "WzEsMl0", "W251bGwsMV0", "e30", "WzEsMWU5OTld"])
)
def test_a_made_up_cursor_is_refused_or_harmless(order: str, cursor: str) -> None:
    code = None
    try:
        names(order, 2, cursor)
    except AppError as error:
        code = error.code
    assert code in (None, ErrorCode.BODY_INVALID)


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 501}, {"limit": "x"}, {"cursor": "!"}])
def test_bounds_of_a_page_are_checked(client: Client, bob: User, query: dict[str, Any]) -> None:
    client.force_login(bob)
    response = client.get("/api/v1/me/devices/", query)
    assert (response.status_code, response.json()["code"]) == (422, "body_invalid")


def test_what_a_member_gets_is_not_kept_by_proxies(client: Client, bob: User) -> None:
    public = client.get("/api/v1/runs/")
    assert public["Cache-Control"].startswith("public, max-age=")
    assert {"Authorization", "Cookie"} <= {v.strip() for v in public["Vary"].split(",")}
    own = client.get("/api/v1/runs/", headers=bearer(token_make(bob)))
    assert own["Cache-Control"].startswith("private")


def test_an_unchanged_answer_is_not_sent_again(client: Client) -> None:
    first = client.get("/api/v1/runs/")
    again = client.get("/api/v1/runs/", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again["Cache-Control"] == first["Cache-Control"]
