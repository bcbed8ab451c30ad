"""A served site with a run whose coordinator is the test: what it reports is shown to browsers."""

import json
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
from django.utils import timezone
from joserfc.jwk import OKPKey

from tests.factories import bearer
from tests.factories_runs import Swarm, Volunteer, snapshot_make, snapshot_sign
from tests.live.site import SLUG, Site

NUM_PEERS = 3
TARGET = 1000
_SEED = f"""
import json
from tests.factories import user_make
from tests.factories_runs import draft_make, run_make, swarm_make
alice = user_make("alice", is_staff=True)
draft = draft_make(swarm={{"target_batch_size": {TARGET}, "min_peers": 1}}, max_epochs=100)
run = run_make(alice, "{SLUG}", draft=draft)
swarm = swarm_make(run, {NUM_PEERS})
def peer(v):
    return dict(public_id=v.peer.public_id, peer_id=v.peer.peer_id,
                thumbprint=v.peer.key_thumbprint, key=v.key.as_dict(private=True))
print("SEED" + json.dumps(dict(token=swarm.token, key=swarm.coordinator_key.as_dict(private=True),
                               peers=[peer(v) for v in swarm.volunteers])))
"""


class LiveSite(Site):
    """``seed``, then ``serve``; ``report`` is one snapshot of the coordinator."""

    swarm: Swarm

    def __init__(self, data: Path, redis_url: str, port: int) -> None:
        super().__init__(data, redis_url, port)
        self.redis_url = redis_url
        self.samples = 0

    @property
    def page(self) -> str:
        return f"http://127.0.0.1:{self.port}/runs/{SLUG}/"

    def seed(self) -> None:
        self._begin()
        self._manage("collectstatic", "--verbosity", "0", "--no-input")
        told = self._manage("shell", "-v", "0", "-c", _SEED)
        known = json.loads(told.split("SEED", 1)[1])
        run: Any = SimpleNamespace(slug=SLUG)
        key = OKPKey.import_key(known["key"])
        self.swarm = Swarm(run, SimpleNamespace(), key, known["token"])  # type: ignore[arg-type]
        for peer in known["peers"]:
            row: Any = SimpleNamespace(
                run=run, peer_id=peer["peer_id"], key_thumbprint=peer["thumbprint"]
            )
            volunteer = Volunteer(row, row, OKPKey.import_key(peer["key"]))
            self.swarm.volunteers.append(volunteer)

    def report(self, **fields: Any) -> None:
        """Post the next snapshot: all trainers at work, 10 samples more each time."""
        self.samples += 10
        now = timezone.now() - timedelta(milliseconds=20)
        given = {"samples_accumulated": 3 * self.samples, "samples_per_second": 15.0} | fields
        jws = snapshot_sign(self.swarm, snapshot_make(self.swarm, now, **given), now)
        answer = httpx.post(
            f"http://127.0.0.1:{self.port}/api/v1/runs/{SLUG}/snapshots/",
            json={"snapshot": jws},
            headers=bearer(self.swarm.token),
            timeout=20,
        )
        assert answer.json().get("accepted"), answer.text
