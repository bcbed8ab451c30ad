"""The desk's table of peers and what a moderator does with one."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories import token_make, user_make
from tests.factories_runs import (
    Swarm,
    Volunteer,
    observation_make,
    peer_make,
    run_make,
    snapshot_take,
    swarm_make,
)
from training.protocol.api import PassRequest, PassResponse
from training.protocol.errors import ErrorCode
from training.protocol.names import TRAINER_VERSION
from training.protocol.states import Command, Role
from web.accounts.credentials import credential_of_token
from web.accounts.models import User
from web.contributions.models import Suspicion
from web.contributions.standing import Standing
from web.core.errors import AppError
from web.core.models import AuditEntry
from web.monitoring.models import Peer, PeerMessage
from web.monitoring.services import peer_heartbeat, peer_message_send
from web.monitoring.services.revocations import revocations_current
from web.runs.models import BootstrapPeer, Run, RunBar, RunDeviceBar, RunMember
from web.runs.services import run_bars_expire, run_member_add

PAGE = "/control/runs/demo/peers/"


@pytest.fixture
def swarm(alice: User, bob: User, charlie: User) -> Swarm:
    made = swarm_make(run_make(alice), 2, users=[bob, charlie])
    snapshot_take(made)
    return made


@pytest.fixture
def desk(client: Client, swarm: Swarm) -> Client:
    """A moderator's."""
    erin = user_make("erin")
    RunMember.objects.create(run=swarm.run, user=erin, part=RunMember.Part.MODERATOR)
    client.force_login(erin)
    return client


def address(volunteer: Volunteer, act: str = "") -> str:
    return f"{PAGE}{volunteer.peer.public_id}/{act}{'/' if act else ''}"


def beat(run: Run, volunteer: Volunteer, **fields: Any) -> PassResponse:
    token = token_make(volunteer.device.user, device=volunteer.device)
    now = timezone.now()
    run = Run.objects.get(pk=run.pk)
    return peer_heartbeat(credential_of_token(token, now), run, PassRequest(**fields), now)


def test_the_table_shows_what_the_public_one_does_not(desk: Client, swarm: Swarm) -> None:
    bobs = swarm.volunteers[0].peer
    where = f"/ip4/192.0.2.7/tcp/4001/p2p/{bobs.peer_id}"
    BootstrapPeer.objects.create(run=swarm.run, lineage=1, address=where, seen_at=timezone.now())
    page = desk.get(PAGE).text
    assert "192.0.2.7" in page
    assert "renewed" in page
    assert "machine 0" in page
    now = timezone.now()
    slow, quick = swarm.volunteers
    peers = (observation_make(slow, now, epoch=4), observation_make(quick, now, epoch=6))
    snapshot_take(swarm, now, epoch=6, peers=peers)
    own = desk.get(address(slow)).text
    assert "192.0.2.7" in own
    assert "epoch 4 (2 behind)" in own
    assert "behind)" not in desk.get(address(quick)).text
    viewer = Client()
    viewer.force_login(user_make("frank"))
    RunMember.objects.create(
        run=swarm.run, user=User.objects.get(username="frank"), part=RunMember.Part.VIEWER
    )
    for path in (PAGE, address(swarm.volunteers[0])):
        text = viewer.get(path).text
        assert "192.0.2.7" not in text
        assert "/quarantine/" not in text
    assert "192.0.2" not in viewer.get("/control/runs/demo/").text


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("q=bob", ["machine 0"]), ("q=machine+1", ["machine 1"]), ("q=nothing", []),
        ("role=coordinator", ["coordinator"]), ("state=here&role=trainer&sort=device",
        ["machine 0", "machine 1"]), ("sort=-device&role=trainer", ["machine 1", "machine 0"]),
        ("state=silent", []), ("state=held", []), ("state=out", []), ("state=paused", []),
        ("sort=rubbish&state=rubbish&q=bob", ["coordinator", "machine 0", "machine 1"]),
    ],
)  # fmt: skip
def test_it_is_searched_sorted_and_filtered_on_the_server(
    desk: Client, swarm: Swarm, query: str, names: list[str]
) -> None:
    answer = desk.get(f"{PAGE}?{query}")
    found = [row["peer"].device.name for row in answer.context["rows"]]
    assert (found if "-" in query or "sort=device" in query else sorted(found)) == names


def test_it_costs_as_many_queries_for_many_peers_as_for_few(
    desk: Client, swarm: Swarm, bob: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(60):
        peer_make(swarm.run, bob, f"more {number}")
    with django_assert_max_num_queries(18):
        page = desk.get(PAGE)
    assert "page 1 of 2" in page.text
    assert len(page.context["rows"]) == 50


def test_a_message_reaches_the_trainer_until_it_says_that_it_was_shown(
    desk: Client, swarm: Swarm, client: Client
) -> None:
    bobs = swarm.volunteers[0]
    assert "shown in its terminal" in desk.get(address(bobs, "message")).text
    evil = "Please\x1b[2J update\n your\u202e driver"
    answer = desk.post(address(bobs, "message"), {"text": evil}, follow=True)
    assert "waits for the next heartbeat" in answer.text
    for _ in range(2):  # an answer may get lost
        (note,) = beat(swarm.run, bobs).messages
        assert (note.text, note.sender) == ("Please [2J update your driver", "erin")
    assert beat(swarm.run, bobs, message_seen=note.id).messages == ()
    assert PeerMessage.objects.get().shown_at
    assert beat(swarm.run, swarm.volunteers[1]).messages == ()
    assert AuditEntry.objects.get(code="peer.message.sent").actor_name == "erin"
    owner = Client()
    owner.force_login(bobs.device.user)
    assert "update your driver" in owner.get("/devices/").text
    other = Client()
    other.force_login(swarm.volunteers[1].device.user)
    assert "update your driver" not in other.get("/devices/").text


def test_messages_are_bounded(swarm: Swarm, alice: User) -> None:
    peer = swarm.volunteers[0].peer
    for number in range(5):
        peer_message_send(alice, peer, f"number {number}")
    for text in ("one more", "", " \x1b ", "x" * 501):
        with pytest.raises(AppError) as error:
            peer_message_send(alice, peer, text)
        assert error.value.code == ErrorCode.BODY_INVALID
    beat(swarm.run, swarm.volunteers[0], message_seen=2**40)
    for number in range(60):
        peer_message_send(alice, peer, f"later {number}")
        PeerMessage.objects.update(shown_at=timezone.now())
    assert PeerMessage.objects.count() == 50


def test_one_peer_rests_until_it_is_resumed(desk: Client, swarm: Swarm) -> None:
    bobs, other = swarm.volunteers
    desk.post(address(bobs, "pause"), {"reason": "noise"})
    for _ in range(2):
        assert beat(swarm.run, bobs).commands == (Command.PAUSE,)
    assert beat(swarm.run, other).commands == (Command.RESUME,)
    assert "Paused" in desk.get(PAGE).text
    assert desk.post(address(bobs, "pause"), {"reason": "again"}).status_code == 422
    desk.post(address(bobs, "resume"), {"reason": "quiet now"})
    assert beat(swarm.run, bobs).commands == (Command.RESUME,)
    assert beat(swarm.run, bobs).commands == (Command.RESUME,), "an answer may get lost"
    codes = AuditEntry.objects.filter(code__startswith="peer.").values_list("code", flat=True)
    assert {"peer.paused", "peer.resumed"} <= set(codes)


def test_a_coordinator_cannot_rest_and_a_machine_of_the_site_cannot_be_shut_out(
    desk: Client, swarm: Swarm
) -> None:
    path = f"{PAGE}{Peer.objects.get(role='coordinator').public_id}/"
    assert "/pause/" not in desk.get(path).text
    assert desk.post(f"{path}pause/", {"reason": "x"}).status_code == 422
    assert desk.post(f"{path}quarantine/", {"reason": "x"}).status_code == 422
    assert desk.post(f"{path}shut-out/", {"reason": "x"}).status_code == 403


def test_a_moderator_does_not_shut_out_machines_of_people_with_a_role(
    desk: Client, swarm: Swarm, bob: User
) -> None:
    machines = {user: peer_make(swarm.run, user, "desk") for user in (swarm.run.organiser, bob)}
    run_member_add(swarm.run.organiser, swarm.run, bob, RunMember.Part.VIEWER)
    for user, machine in machines.items():
        answer = desk.post(address(machine, "shut-out"), {"reason": "x"})
        assert answer.status_code == 403, user
    desk.force_login(swarm.run.organiser)
    answer = desk.post(address(machines[bob], "shut-out"), {"reason": "x"})
    assert answer.status_code == 302, "organisers may"


def test_a_coordinator_is_not_shut_out_and_nothing_is_done_twice_from_an_old_page(
    desk: Client, swarm: Swarm
) -> None:
    """The coordinator may be somebody's own machine: without it nobody enters the run."""
    own = peer_make(swarm.run, user_make("frank"), "tower", role=Role.COORDINATOR)
    page = f"{PAGE}{own.peer.public_id}/"
    assert "/shut-out/" not in desk.get(page).text
    assert desk.post(f"{page}shut-out/", {"reason": "x"}).status_code == 403
    assert not RunDeviceBar.objects.exists()
    bobs = swarm.volunteers[0]
    desk.post(address(bobs, "shut-out"), {"reason": "first"})
    assert desk.post(address(bobs, "shut-out"), {"reason": "second"}).status_code == 422
    assert RunDeviceBar.objects.get().reason == "first"
    assert desk.post(address(bobs, "resume"), {"reason": "x"}).status_code == 422


def test_quarantine_holds_new_work_until_it_is_decided(desk: Client, swarm: Swarm) -> None:
    bobs = swarm.volunteers[0]
    desk.post(address(bobs, "quarantine"), {"reason": "odd losses"})
    suspicion = Suspicion.objects.get()
    assert (suspicion.kind, suspicion.evidence["by"]) == ("quarantine", "erin")
    assert "Held back" in desk.get(f"{PAGE}?state=held").text
    assert desk.post(address(bobs, "quarantine"), {"reason": "x"}).status_code == 422
    assert "a moderator put it in quarantine" in desk.get("/control/queue/").text.lower()
    desk.post(
        f"/control/runs/demo/suspicions/{suspicion.pk}/", {"decision": "cleared", "reason": "fine"}
    )
    assert "Held back" not in desk.get(PAGE).text.replace('">Held back</option>', "")
    desk.post(address(bobs, "quarantine"), {"reason": "once more"})
    assert Suspicion.objects.filter(state="open").count() == 1, "at once, if need be"


def test_a_machine_is_shut_out_of_one_run_and_let_in_again(
    desk: Client, swarm: Swarm, bob: User
) -> None:
    bobs = swarm.volunteers[0]
    second = peer_make(swarm.run, bob, "second")
    elsewhere = run_make(swarm.run.organiser, "other")
    there = Peer.objects.create(
        run=elsewhere, device=bobs.device, peer_id="QmThere", key_thumbprint="0" * 64,
        swarm_public_key="", role="trainer", trainer_version=TRAINER_VERSION,
        joined_at=timezone.now(),
    )  # fmt: skip
    assert "Its owner&#x27;s other machines" in desk.get(address(bobs, "shut-out")).text
    answer = desk.post(address(bobs, "shut-out"), {"reason": "broken GPU"}, follow=True)
    assert "Shut out" in answer.text
    assert revocations_current(swarm.run).peer_ids == [bobs.peer.peer_id]
    with pytest.raises(AppError) as error:
        beat(swarm.run, bobs)
    assert (error.value.code, "broken GPU" in error.value.detail) == (ErrorCode.BARRED, True)
    assert beat(swarm.run, second).commands == (Command.RESUME,)
    assert beat(elsewhere, Volunteer(there, bobs.device, bobs.key)).commands == (Command.RESUME,)
    assert "broken GPU" in desk.get("/control/runs/demo/").text
    desk.post(f"/control/runs/demo/devices/{bobs.device.public_id}/unbar/")
    assert revocations_current(swarm.run).peer_ids == []
    assert beat(swarm.run, bobs).commands == (Command.RESUME,)
    entry = AuditEntry.objects.get(code="run.device.restored")
    assert entry.data["before"] == {"reason": "broken GPU"}


def test_work_of_a_machine_that_is_shut_out_is_not_counted(desk: Client, swarm: Swarm) -> None:
    from web.contributions.services import barred_reason
    from web.runs.selectors import run_barred

    bobs, other = swarm.volunteers
    desk.post(address(bobs, "shut-out"), {"reason": "x"})
    RunBar.objects.create(
        run=swarm.run, user=other.device.user, reason="y", barred_at=timezone.now()
    )
    barred = run_barred(swarm.run)
    assert barred_reason(bobs.device, barred) == "this machine is shut out of the run"
    assert barred_reason(other.device, barred) == "this account is barred from the run"
    assert (barred.users, barred.devices) == ({other.device.user_id}, {bobs.device.pk})


def test_bars_for_a_time_end_by_themselves(desk: Client, swarm: Swarm) -> None:
    bobs, other = swarm.volunteers
    desk.post(address(bobs, "shut-out"), {"reason": "x", "hours": "1"})
    name = other.device.user.username
    desk.post(f"/control/runs/demo/people/{name}/bar/", {"reason": "y", "hours": "24"})
    now = timezone.now()
    assert run_bars_expire(now) == 0
    assert len(revocations_current(swarm.run).peer_ids) == 2
    assert run_bars_expire(now + timedelta(hours=2)) == 1
    assert not RunDeviceBar.objects.exists()
    assert run_bars_expire(now + timedelta(days=2)) == 1
    assert revocations_current(swarm.run).peer_ids == []
    entry = AuditEntry.objects.get(code="run.person.restored")
    assert (entry.actor_name, entry.data["reason"]) == ("", "its time was over")


@pytest.mark.parametrize(
    ("standing", "word"),
    [
        (Standing(), "new"),
        (Standing(confirmed=19), "new"),
        (Standing(confirmed=20), "proven"),
        (Standing(confirmed=100, rejected=5), "proven"),
        (Standing(confirmed=100, rejected=6), "doubted"),
        (Standing(confirmed=100, upheld=1), "doubted"),
        (Standing(confirmed=100, open=1), "held"),
    ],
)
def test_trust_is_a_word_with_figures(standing: Standing, word: str) -> None:
    assert standing.word == word
    assert "confirmed" in standing.text
