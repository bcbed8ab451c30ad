"""Who may do what: every address of the site, asked in the name of everybody."""

import re
from pathlib import Path

import pytest
from django.test import Client
from django.urls import URLResolver, get_resolver

from tests.hostile.addresses import DESK, PEOPLE, PROGRAMS, RUNS, Scene, routes, scene_make
from web.accounts.models import User
from web.live.routing import websocket_urlpatterns

pytestmark = pytest.mark.django_db
TABLE = Path(__file__).with_name("permissions.txt")
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>|\(\?P<(\w+)>[^)]*\)")
WITHOUT_CSRF = {
    "/identity/o/api/token",
    "/identity/o/api/revoke",
    "/identity/o/api/device/code",
    "/identity/o/api/userinfo",
}
"""Called by programs, which show a token or a code instead of a session."""


def name_of(route: str) -> str:
    """Return a route as the table writes it."""
    name = _PARAMETER.sub(lambda match: f"<{match[1] or match[2]}>", route)
    return "/" + re.sub(r"[\^$]|\\Z", "", name)


ROUTES = {name_of(route): route for route in routes()}


def table() -> dict[tuple[str, str], list[str]]:
    """Return the cells of each call."""
    rows = (line.split() for line in TABLE.read_text().splitlines() if line[:1].isupper())
    return {(method, name): cells for method, name, *cells in rows}


def row_now(scene: Scene, method: str, name: str) -> list[str]:
    """Return the cells as the site answers today."""
    cells = []
    for who in (*(PROGRAMS if name.startswith("/api/") else PEOPLE), *DESK):
        slugs = RUNS if "<slug>" in name else RUNS[:1]
        answers = [str(scene.ask(who, method, ROUTES[name], slug)) for slug in slugs]
        cells.append("/".join(dict.fromkeys(answers)))
    return cells


@pytest.fixture
def scene(db: None) -> Scene:
    return scene_make()


@pytest.mark.parametrize("part", ["/api/", "/control/", "/accounts/", "the rest"])
def test_everybody_may_what_the_table_says(scene: Scene, part: str) -> None:
    parts = ("/api/", "/control/", "/accounts/")
    wrong = []
    for (method, name), expected in table().items():
        if name.startswith(part) or (part == "the rest" and not name.startswith(parts)):
            found = row_now(scene, method, name)
            if found != expected:
                wrong.append(f"{method} {name}\n  table {expected}\n  found {found}")
    assert not wrong, "\n".join(wrong)


def test_every_address_is_in_the_table() -> None:
    listed = {name for _, name in table()}
    assert listed == set(ROUTES), "put the new address into tests/hostile/permissions.txt"


def test_what_is_not_in_the_table_cannot_be_posted(scene: Scene) -> None:
    offered = [
        name
        for name, route in ROUTES.items()
        if ("POST", name) not in table()
        and scene.ask("organiser", "post", route, "open") not in (302, 403, 404, 405)
    ]
    # ninja answers its own documents to every method.
    assert set(offered) <= {"/api/v1/docs", "/api/v1/openapi.json"}


def test_nothing_is_posted_from_a_page_of_others(scene: Scene) -> None:
    """Every form asks for the token of our own pages."""
    taken = []
    for method, name in table():
        if method != "POST" or name.startswith("/api/") or name in WITHOUT_CSRF:
            continue
        client = Client(enforce_csrf_checks=True, raise_request_exception=False)
        client.cookies["sessionid"] = scene.cookies["organiser"]
        address = scene.address(ROUTES[name], "open")
        response = client.post(address, headers={"Origin": "https://evil.example"})
        if response.status_code != 403:
            taken.append(name)
    assert taken == []


def test_the_admin_answers_the_staff_only(scene: Scene) -> None:
    (admin,) = (p for p in get_resolver().url_patterns if str(p.pattern) == "admin/")
    assert isinstance(admin, URLResolver)
    pages = ["", "login/", "jsi18n/", "autocomplete/", "password_change/", "r/1/1/"]
    pages += [f"{app}/{page}" for app in ("accounts/user/", "runs/run/", "core/auditentry/")
              for page in ("", "add/", "1/", "1/change/", "1/delete/", "1/history/")]  # fmt: skip
    for page in pages:
        for who in ("organiser", "volunteer", "outsider", "nobody"):
            allowed = (302, 404) if page != "login/" else (200, 302)
            assert scene.ask(who, "get", f"admin/{page}", "open") in allowed, (page, who)
        assert scene.ask("banned", "get", f"admin/{page}", "open") == 403, page
    assert scene.ask("staff", "get", "admin/", "open") == 200
    for page in ("accounts/user/add/", "accounts/user/1/delete/", "runs/run/1/change/"):
        assert scene.ask("staff", "get", f"admin/{page}", "open") in (302, 403), page


def test_every_socket_address_is_known() -> None:
    """Who may watch is a table of its own, in tests/live/test_rights.py."""
    assert [str(p.pattern) for p in websocket_urlpatterns] == ["ws/runs/<slug:slug>/", ""]


def test_a_banned_person_has_no_session_any_more(scene: Scene) -> None:
    client = Client()
    client.cookies["sessionid"] = scene.cookies["banned"]
    assert client.get("/account/").status_code == 403
    assert client.get("/account/").status_code == 302  # to the log-in page: the session is over
    assert User.objects.get(username="banned").is_banned
