"""Real trainers, a real coordinator and the site's own ledger: what is counted is the truth."""

import json
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from tests.factories_runs import Swarm as Site
from tests.factories_runs import Volunteer, draft_make, peer_make, run_make, swarm_make
from tests.factories_runs import snapshot_sign as sign
from tests.swarm.processes import Swarm, config_make, wait_until
from training.client.swarm_key import swarm_key_load_or_create
from training.protocol.states import CreditState
from web.accounts.models import User
from web.contributions.checking import totals_check
from web.contributions.grounds import Ground
from web.contributions.models import ContributionTotal, EpochEvidence, LedgerEntry, Suspicion
from web.contributions.settlement import EVIDENCE_PATIENCE, evidence_settle
from web.monitoring.ingest import snapshot_ingest
from web.monitoring.models import EpochRecord

pytestmark = [pytest.mark.swarm, pytest.mark.timeout(300), pytest.mark.django_db]

CONFIG = config_make({"target_batch_size": 400, "averaging_timeout_seconds": 10})
SPEEDS = {"alice": 50, "bob": 40, "charlie": 30, "dora": 30}
EPOCHS = 16


class Watch:
    """Takes the coordinator's snapshots into the site, as they come."""

    def __init__(self, swarm: Swarm, site: Site, people: dict[str, Volunteer]) -> None:
        self.swarm, self.site, self.people, self.num_taken = swarm, site, people, 0

    def take(self) -> None:
        self.swarm.check_alive()
        for snapshot in self.swarm.site.snapshots(self.num_taken):
            self.num_taken += 1
            now = timezone.now()
            jws = sign(self.site, snapshot, now)
            snapshot_ingest(self.site.credential, self.site.run, jws, now)

    def wait(self, what: str, epochs: int) -> None:
        """Wait until that many more epochs have been reported."""
        goal = EpochRecord.objects.count() + epochs

        def is_so() -> bool:
            self.take()
            return EpochRecord.objects.count() >= goal

        wait_until(what, is_so, seconds=100)

    def stated(self, name: str) -> set[int]:
        """Return the epochs in which somebody's signed word is known to the site."""
        own = self.people[name].peer.peer_id
        rows = EpochEvidence.objects.all()
        return {row.epoch for row in rows if row.claims.get(own, {}).get("stated")}


@pytest.fixture
def swarm(tmp_path: Path) -> Iterator[Swarm]:
    swarm = Swarm(tmp_path, CONFIG)
    yield swarm
    swarm.close()


@pytest.fixture
def watch(swarm: Swarm, alice: User, bob: User) -> Watch:
    """alice and bob have two machines each."""
    site = swarm_make(run_make(alice, draft=draft_make()), 0)
    people = {}
    for number, name in enumerate(SPEEDS):
        home = swarm.folder / name
        home.mkdir(parents=True)
        key = swarm_key_load_or_create(home / "swarm.key")
        person = peer_make(
            site.run, (alice, bob)[number % 2], name, peer_id=key.peer_id,
            key_thumbprint=key.thumbprint,
        )  # fmt: skip
        (home / "device.jwk").write_text(json.dumps(person.key.as_dict(private=True)))
        people[name] = person
    return Watch(swarm, site, people)


def counted(watch: Watch) -> dict[str, dict[int, int]]:
    """Return the ledger's confirmed samples by machine and epoch."""
    found: dict[str, dict[int, int]] = defaultdict(dict)
    names = {person.device.pk: name for name, person in watch.people.items()}
    for entry in LedgerEntry.objects.filter(state=CreditState.CONFIRMED):
        rows = found[names[entry.device_id]]
        assert entry.epoch not in rows, "an epoch was counted twice"
        rows[entry.epoch] = entry.samples
    return found


def truth_of(swarm: Swarm, name: str, epochs: set[int]) -> dict[int, int]:
    rows = swarm.truth(name)
    return {e: n for e in rows for n in rows[e].values() if n and e in epochs}


def test_four_trainers_of_which_one_is_late_one_is_killed_and_one_falls_behind(
    swarm: Swarm, watch: Watch
) -> None:
    began = time.monotonic()
    swarm.start_coordinator()
    for name in ("alice", "bob", "charlie"):
        swarm.start_trainer(name, speed=SPEEDS[name])
    watch.wait("the first epochs", 2)
    swarm.start_trainer("dora", speed=SPEEDS["dora"])
    watch.wait("dora's first epochs", 4)

    before = watch.stated("charlie")
    wait_until("charlie's word", lambda: watch.take() or watch.stated("charlie") > before)  # type: ignore[func-returns-value]
    swarm.kill("charlie")
    watch.wait("epochs without charlie", 2)

    (swarm.folder / "bob" / "sleep").touch()
    watch.wait("epochs that bob sleeps through", 3)
    (swarm.folder / "bob" / "sleep").unlink()
    watch.wait("bob again", max(3, EPOCHS - EpochRecord.objects.count()))
    missed = set(range(max(swarm.truth("bob")))) - set(swarm.truth("bob"))
    assert missed, "bob has to have resynchronised"

    at_once = LedgerEntry.objects.filter(state=CreditState.CONFIRMED, settles=None).count()
    evidence_settle(timezone.now() + EVIDENCE_PATIENCE)
    took = time.monotonic() - began
    epochs = set(EpochRecord.objects.values_list("epoch", flat=True))
    ledger, total_errors = counted(watch), {}
    for name in SPEEDS:
        truth = truth_of(swarm, name, epochs)
        wrong = sum(abs(truth.get(e, 0) - ledger[name].get(e, 0)) for e in epochs)
        total_errors[name] = wrong / sum(truth.values())
    grounds = Counter(LedgerEntry.objects.values_list("state", "ground"))
    logging.getLogger(__name__).info(
        "%d epochs in %.0f s, errors %s, %d entries confirmed at once, %s, bob missed %s",
        *(len(epochs), took, total_errors, at_once, dict(grounds), sorted(missed)),
    )
    assert len(epochs) >= EPOCHS
    assert max(total_errors.values()) <= 0.01, total_errors
    assert sum(ledger["charlie"].values()) > 0
    assert not Suspicion.objects.exists(), "honest machines are not suspicious"
    assert not LedgerEntry.objects.filter(ground=Ground.NOT_IN_GROUP).exists()
    assert not EpochEvidence.objects.filter(settled_at=None).exists()
    assert totals_check(timezone.now()).num_differences == 0
    sums = sum(n for rows in ledger.values() for n in rows.values())
    assert sum(ContributionTotal.objects.values_list("samples", flat=True)) == sums
    assert took <= 120
