"""With a real PostgreSQL: many people act at once, and numbers of lists only grow."""

import os
import subprocess
import sys

import pytest

ROUNDS = """
import threading
from django.db import connection, connections
from django.utils import timezone
from tests.factories import user_make, token_make
from tests.factories_runs import peer_make, peer_joined, run_make, snapshot_take, swarm_make
from training.protocol.keys import key_generate
from web.accounts.devices import device_revoke
from web.accounts.models import User
from web.accounts.services import user_ban, user_unban
from web.monitoring.models import Peer, RevocationList
from web.runs.models import Run
from web.runs.services import run_bar_add, run_bar_lift

assert connection.vendor == "postgresql"
alice = user_make("alice", is_staff=True)
runs = [run_make(alice, f"run-{n}") for n in range(3)]
people = [user_make(f"volunteer{n}") for n in range(8)]
for person in people:
    for run in runs:
        peer_make(run, person)
swarms = [swarm_make(run, 2, users=people[:2]) for run in runs]
errors = []
start = threading.Barrier(12)


def together(act):
    def run_it():
        try:
            start.wait(30)
            act()
        except Exception as error:
            errors.append(repr(error))
        finally:
            connections.close_all()
    return threading.Thread(target=run_it)


def ban(n):
    return lambda: user_ban(alice, User.objects.get(pk=people[n].pk), "spam")


def bar(n, m):
    return lambda: run_bar_add(alice, runs[n], people[m], "noise")


def report(swarm):
    def act():
        for _ in range(4):
            snapshot_take(swarm)
    return act


def revoke(n):
    return lambda: device_revoke(alice, people[n].devices.first())


def join(n):
    return lambda: peer_joined(runs[n], people[7], key_generate(), n)


acts = [ban(2), ban(3), ban(4), bar(0, 5), bar(1, 5), revoke(6), revoke(6), join(0), join(1)]
acts += [report(swarm) for swarm in swarms]
threads = [together(act) for act in acts]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
assert not errors, errors
for index, run in enumerate(runs):
    lists = list(RevocationList.objects.filter(run=run).order_by("seq"))
    numbers = [row.seq for row in lists]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers
    assert numbers[-1] >= 4, numbers
    assert all(a.peer_ids != b.peer_ids for a, b in zip(lists, lists[1:]))
    assert all(a.made_at <= b.made_at for a, b in zip(lists, lists[1:]))
    banned = Peer.objects.filter(run=run, device__user__in=people[2:5])
    gone = set(banned.values_list("peer_id", flat=True))
    assert gone <= set(lists[-1].peer_ids), "two bans at once, and one of them was lost"
print("lists", [row.seq for row in RevocationList.objects.order_by("run", "seq")])
"""


@pytest.mark.postgres
def test_bans_bars_revocations_joins_and_reports_at_once_lose_nothing(postgres_url: str) -> None:
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "TEST_DATABASE_URL": postgres_url,
    }
    for command, words in (("flush", ["--noinput"]), ("shell", ["-c", ROUNDS])):
        migrate = ["migrate", "--verbosity", "0"]
        for arguments in (migrate, [command, *words]):
            result = subprocess.run(
                [sys.executable, "manage.py", *arguments],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=180,
            )
            assert result.returncode == 0, result.stderr[-3000:]
    assert "lists" in result.stdout
