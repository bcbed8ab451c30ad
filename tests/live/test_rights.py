"""Who may watch a run, and what happens when that ends."""

import json

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.factories_runs import run_make, snapshot_take, swarm_make
from tests.live.sockets import in_database, socket_open
from web.accounts.models import User
from web.accounts.services import user_ban
from web.core.events import access_changed_publish
from web.live.access import watchers_allowed
from web.live.hub import hub_get
from web.runs.models import Run, RunMember
from web.runs.services import run_member_add, run_member_remove

pytestmark = pytest.mark.django_db(transaction=True)


WHO = [
    ("alice", 0, 0),
    ("bob", 0, 0),
    ("charlie", 0, 4403),
    ("nobody", 0, 4403),
    ("mallory", 4403, 4403),
]
"""Name, close code of a public run, close code of a private one (0: a snapshot)."""


@pytest.mark.parametrize("part", list(RunMember.Part))
async def test_every_role_opens_the_stream_of_a_private_run_and_its_end_ends_it(
    alice: User, charlie: User, private_run: Run, part: str
) -> None:
    async with socket_open("hidden", user=charlie) as early:
        assert await early.closed() == 4403
    await in_database(run_member_add, alice, private_run, charlie, part)
    async with socket_open("hidden", user=charlie) as stream:
        assert (await stream.next())["type"] == "run.snapshot"
        await in_database(run_member_remove, alice, private_run, charlie)
        assert (await stream.next())["reason"] == "access_ended"
        assert await stream.closed() == 4403


@pytest.fixture
def private_run(alice: User, bob: User, transactional_db: None) -> Run:
    run = run_make(alice, "hidden", is_public=False)
    RunMember.objects.create(run=run, user=bob, part=RunMember.Part.VOLUNTEER)
    return run


async def test_a_draft_is_watched_by_those_inside_only(people: dict[str, User]) -> None:
    await in_database(run_make, people["alice"], "soon", is_open=False)
    for name in ("charlie", "nobody"):
        async with socket_open("soon", user=people.get(name)) as socket:
            assert await socket.closed() == 4403, name
    async with socket_open("soon", user=people["alice"]) as socket:
        assert (await socket.next())["type"] == "run.snapshot"


async def test_who_may_watch(private_run: Run, people: dict[str, User]) -> None:
    await in_database(run_make, people["alice"], "open")
    for name, public, private in WHO:
        for slug, code in (("open", public), ("hidden", private)):
            async with socket_open(slug, user=people.get(name)) as socket:
                if code:
                    assert await socket.closed() == code, (name, slug)
                else:
                    assert (await socket.next())["type"] == "run.snapshot", (name, slug)


@pytest.fixture
def people(alice: User, bob: User, charlie: User, mallory: User) -> dict[str, User]:
    return {user.username: user for user in (alice, bob, charlie, mallory)}


async def test_a_ban_ends_the_stream_with_a_goodbye(
    alice: User, bob: User, private_run: Run
) -> None:
    async with (
        socket_open("hidden", user=bob) as bobs,
        socket_open("hidden", user=alice) as alices,
    ):
        await bobs.next()
        await alices.next()
        await in_database(user_ban, alice, bob, "spam")
        assert await bobs.closed() == 4403
        bye = bobs.frames[-1]
        assert (bye["type"], bye["reason"]) == ("run.bye", "access_ended")
        assert bye["retry_after"] > 0
        assert await alices.settle() == []


def test_rights_of_many_viewers_are_two_queries(
    alice: User,
    bob: User,
    charlie: User,
    private_run: Run,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    ask = watchers_allowed.func  # in this thread
    with django_assert_num_queries(2):
        assert ask("hidden", {alice.pk, bob.pk, charlie.pk, None}) == {alice.pk, bob.pk}


async def test_a_run_that_becomes_private_loses_its_strangers(
    alice: User, charlie: User, transactional_db: None
) -> None:
    run = await in_database(run_make, alice)
    async with socket_open() as nobody, socket_open(user=charlie) as stranger:
        await nobody.next()
        await stranger.next()
        await in_database(Run.objects.filter(pk=run.pk).update, is_public=False)
        await in_database(access_changed_publish)
        assert await nobody.closed() == 4403
        assert await stranger.closed() == 4403


async def test_a_server_that_goes_says_when_to_come_back(
    alice: User, transactional_db: None
) -> None:
    await in_database(run_make, alice)
    async with socket_open() as socket:
        await socket.next()
        await hub_get().close()
        assert await socket.closed() == 1012
        bye = socket.frames[-1]
        assert (bye["type"], bye["reason"]) == ("run.bye", "restart")
        assert 0 < bye["retry_after"] <= 10
    async with socket_open() as late:
        assert await late.closed() == 1012


async def test_the_organiser_and_a_stranger_get_the_same_and_no_address(
    alice: User, transactional_db: None
) -> None:
    swarm = await in_database(lambda: swarm_make(run_make(alice)))
    async with socket_open(user=alice) as alices, socket_open() as nobodys:
        for socket in (alices, nobodys):
            await socket.next()
        await in_database(snapshot_take, swarm)
        for socket in (alices, nobodys):
            await socket.settle()
        assert alices.frames == nobodys.frames
        text = json.dumps(nobodys.frames)
        assert "/ip4/" not in text
        assert swarm.volunteers[0].peer.peer_id not in text
        assert swarm.volunteers[0].thumbprint not in text
