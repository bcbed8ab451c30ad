"""Every address of the site, asked in the name of everybody; for the table of permissions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from http.cookies import SimpleCookie
from typing import Any

from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from tests.factories import bearer, token_make, user_make
from tests.factories_runs import run_make, snapshot_take, swarm_make
from web.accounts.models import User
from web.accounts.services import token_issue
from web.runs.models import Run, RunMember
from web.workers.models import ManagedWorker

PEOPLE = ("organiser", "volunteer", "outsider", "banned", "nobody", "staff")
PROGRAMS = (*PEOPLE, "coordinator")
"""Who calls the API, each with a device token of their own."""
DESK = ("moderator", "viewer", "admin")
"""People with a seat at the desk of both runs, and a superuser; last in the table's rows."""
RUNS = ("open", "hidden")
_CONVERTER = re.compile(r"<(?:\w+:)?(\w+)>|\(\?P<(\w+)>[^)]*\)")


@dataclass
class Scene:
    """A public and a private run, and everybody with a session and a token."""

    cookies: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    """What stands for the parameters of addresses; ``slug`` comes from the case."""
    of_run: dict[str, dict[str, str]] = field(default_factory=dict)
    """The same, where each run has its own."""

    def ask(self, who: str, method: str, route: str, run: str, body: Any = None) -> int:
        """Return the status of one request; nothing of what it did stays."""
        client = Client(raise_request_exception=False)
        options: dict[str, Any] = {}
        if route.startswith("api/"):
            options["content_type"] = "application/json"
            if who in self.tokens:
                options["headers"] = bearer(self.tokens[who])
        elif who in self.cookies:
            client.cookies = SimpleCookie({"sessionid": self.cookies[who]})
        address = self.address(route, run)
        with transaction.atomic():
            call = getattr(client, method.lower())
            response = call(address, **options) if body is None else call(address, body, **options)
            transaction.set_rollback(True)
        return int(response.status_code)

    def address(self, route: str, run: str) -> str:
        """Return a route with its parameters filled in."""
        values = self.values | self.of_run.get(run, {}) | {"slug": run}
        filled = _CONVERTER.sub(lambda match: values[match[1] or match[2]], route)
        return "/" + re.sub(r"[\^$]|\\Z", "", filled)


def scene_make() -> Scene:
    """Return the scene; ``organiser`` has no other right than to organise both runs."""
    people = {name: user_make(name) for name in (*PEOPLE, *DESK) if name != "nobody"}
    organiser, volunteer = people["organiser"], people["volunteer"]
    User.objects.filter(pk__in=(organiser.pk, people["staff"].pk)).update(is_staff=True)
    User.objects.filter(pk=people["admin"].pk).update(is_superuser=True)
    organiser.refresh_from_db()
    runs = [run_make(organiser, slug, is_public=slug == "open") for slug in RUNS]
    User.objects.filter(pk=organiser.pk).update(is_staff=False)
    scene = Scene()
    for run in runs:
        swarm = swarm_make(run, 1, users=[volunteer])
        snapshot_take(swarm)
        scene.of_run[run.slug] = {"peer": swarm.volunteers[0].peer.public_id}
        RunMember.objects.get_or_create(
            run=run, user=volunteer, defaults={"part": RunMember.Part.VOLUNTEER}
        )
        for part in (RunMember.Part.MODERATOR, RunMember.Part.VIEWER):
            RunMember.objects.create(run=run, user=people[part], part=part)
        ManagedWorker.objects.create(run=run, kind=ManagedWorker.Kind.TRAINER, name="trainer-1")
    scene.values = {
        "username": "volunteer",
        "name": "trainer-1",
        "public_id": swarm.volunteers[0].device.public_id,
        "device_id": swarm.volunteers[0].device.public_id,
        "token_id": str(token_issue(volunteer, "read")[0].pk),
        "suspicion_id": "404",
        "event": "pause",
        "version": "1",
        "form": "json",
        "act": "pause",
        "epoch": "7",
        "lineage": "1",
        "kind": "marks",
        "sha256": "0" * 64,
        "key": "no-such-key",
        "uidb36": "1",
    }
    for name, user in people.items():
        client = Client()
        client.force_login(user)
        scene.cookies[name] = client.cookies["sessionid"].value
        scene.tokens[name] = token_make(user)
    service = User.objects.get(username="yard")
    scene.tokens["coordinator"] = token_make(service, "coordinator", run_slug="open")
    User.objects.filter(username="banned").update(banned_at=timezone.now(), banned_reason="spam")
    Run.objects.update(state_changed_at=timezone.now() - timedelta(hours=1))
    return scene


def routes() -> Iterator[str]:
    """Yield every address of the site but those of Django's admin, which has a test of its own."""
    yield from _routes(get_resolver().url_patterns, "")


def _routes(patterns: Any, prefix: str) -> Iterator[str]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver) and route != "admin/":
            yield from _routes(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            yield route
