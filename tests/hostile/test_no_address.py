"""No page, answer or frame for the public tells at which address a machine can be reached."""

import json
import re
from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import bearer
from tests.factories_runs import run_make, snapshot_take, swarm_make
from tests.hostile.addresses import Scene, routes, scene_make
from tests.live.sockets import in_database, socket_open
from web.accounts.models import User
from web.monitoring.models import Peer, RunEvent
from web.runs.models import BootstrapPeer, Run
from web.runs.services import bootstrap_peers_mark

ADDRESSES = ("/ip4/203.0.113.77/tcp/31337/p2p/QmSecret", "/ip6/2001:db8::77/tcp/31338/p2p/QmSecret")
FOUND = re.compile(r"203\.0\.113\.77|2001:db8::77|/ip[46]/|/dns[46]?/|3133[78]|QmSecret")
READERS = ("nobody", "outsider", "volunteer")
NOT_WALKED = re.compile(r"^(admin/|identity/|accounts/|control/)")
"""Django's, the login provider's and the log-in pages know no swarm; the desk is not public."""


@pytest.fixture
def scene(db: None) -> Scene:
    scene = scene_make()
    run = Run.objects.get(slug="open")
    bootstrap_peers_mark(run, 1, ADDRESSES, timezone.now())
    scene.values["key"] = Peer.objects.get(run=run, role="trainer").public_id
    scene.values["public_id"] = scene.values["key"]
    return scene


def read(scene: Scene, who: str, route: str) -> str:
    client = Client(raise_request_exception=False)
    headers = bearer(scene.tokens[who]) if route.startswith("api/") and who in scene.tokens else {}
    if who in scene.cookies and not headers:
        client.cookies["sessionid"] = scene.cookies[who]
    response = client.get(scene.address(route, "open"), headers=headers)
    body = b"".join(response.streaming_content) if response.streaming else response.content
    return body.decode(errors="replace") + json.dumps(dict(response.headers))


def walked() -> Iterator[str]:
    for route in routes():
        if not NOT_WALKED.match(route):
            yield route


def test_no_page_and_no_answer_has_an_address(scene: Scene) -> None:
    told = [
        (who, route)
        for route in walked()
        for who in READERS
        if FOUND.search(read(scene, who, route))
    ]
    assert told == []
    assert BootstrapPeer.objects.filter(address__in=ADDRESSES).count() == 2, "they are known"
    assert "/runs/<slug:slug>/peers/<str:key>/" in {f"/{route}" for route in walked()}


def test_the_walk_would_find_one(scene: Scene) -> None:
    RunEvent.objects.create(
        run=Run.objects.get(slug="open"), seq=999, at=timezone.now(), kind="x", text=ADDRESSES[0]
    )
    told = {route for route in walked() if FOUND.search(read(scene, "nobody", route))}
    assert {"runs/<slug:slug>/", "runs/<slug:slug>/events/", "api/v1/runs/<slug>/events/"} <= told


@pytest.mark.django_db(transaction=True)
async def test_no_frame_has_an_address(alice: User, transactional_db: None) -> None:
    swarm = await in_database(lambda: swarm_make(run_make(alice)))
    await in_database(bootstrap_peers_mark, swarm.run, 1, ADDRESSES, timezone.now())
    async with socket_open() as socket:
        await socket.next()
        for _ in range(2):
            await in_database(snapshot_take, swarm, bootstrap_peers=ADDRESSES)
            await socket.settle()
        assert {frame["type"] for frame in socket.frames} >= {"run.snapshot", "run.patch"}
        assert [f for f in socket.frames if FOUND.search(json.dumps(f))] == []
