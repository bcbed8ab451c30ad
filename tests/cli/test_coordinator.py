"""``beeyard coordinator``: what the site's answers make of it. The swarm has its own tests."""

import signal
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from tests.cli.conftest import BEGAN_ANEW, Beeyard, Ran
from tests.client.stand_in_site import SLUG, Answer, Call, StandInSite, config_make
from training.client.errors import ClientError
from training.coordinator.session import CoordinatorSession
from training.protocol.api import SnapshotRequest
from training.protocol.claims import Revocations
from training.protocol.config import OptimizerConfig, ReportConfig
from training.protocol.envelope import peek_key_id, peek_type
from training.protocol.metrics import SwarmSnapshot
from training.protocol.names import TYP_REVOCATIONS, TYP_SNAPSHOT

SNAPSHOTS = f"/api/v1/runs/{SLUG}/snapshots/"


class Desk:
    """Runs the command; ``work`` stands for the coordinator itself."""

    def __init__(self, site: StandInSite, beeyard: Beeyard, token_file: str, folder: Path) -> None:
        self.site, self.beeyard, self.token_file, self.folder = site, beeyard, token_file, folder
        self.signals: list[int] = []
        self.state = "open"
        self.session: CoordinatorSession | None = None
        site.overrides[SNAPSHOTS] = self._snapshot

    def run(self) -> Ran:
        words = ["coordinator", self.site.run_url, "--token-file", self.token_file]
        return self.beeyard(*words, "--port", "4444", "--checkpoints", str(self.folder / "cp"))

    def work(self, session: CoordinatorSession) -> int:
        self.session = session
        before = signal.signal(signal.SIGTERM, lambda number, frame: self.signals.append(number))
        try:
            self.report(session)
        finally:
            signal.signal(signal.SIGTERM, before)
        return 0

    def report(self, session: CoordinatorSession) -> None:
        now = self.site.now()
        body = SwarmSnapshot(
            run=SLUG,
            lineage=1,
            seq=1,
            taken_at=now,
            epoch=0,
            samples_accumulated=0,
            samples_per_second=0.0,
        )
        token = session.sign(body, TYP_SNAPSHOT)
        assert peek_type(token) == TYP_SNAPSHOT
        assert peek_key_id(token) == self.beeyard.home.device_key().thumbprint()
        for _ in range(3):
            session.post_snapshot(SnapshotRequest(snapshot=token))

    def _snapshot(self, call: Call) -> Answer:
        body = {"accepted": True, "last_seq": 1, "state": self.state}
        return Answer(body=body | {"config_version": self.site.config.version})


@pytest.fixture
def desk(
    site: StandInSite,
    beeyard: Beeyard,
    token_file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Desk:
    made = Desk(site, beeyard, token_file, tmp_path)
    module = ModuleType("training.coordinator.service")
    module.coordinator_run = lambda session: made.work(session)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "training.coordinator.service", module)

    def restart(number: int) -> None:
        raise SystemExit(BEGAN_ANEW)

    monkeypatch.setattr("training.cli.coordinator.process_restart", restart)
    return made


def test_a_coordinator_joins_with_its_role_and_gets_its_folders(desk: Desk) -> None:
    ran = desk.run()
    assert ran.code == 0
    assert desk.signals == []
    (join,) = [call for call in desk.site.calls if call.path.endswith("/join/")]
    assert join.body["role"] == "coordinator"
    session = desk.session
    assert session is not None
    assert (session.port, session.bind) == (4444, "127.0.0.1")
    assert session.checkpoints_dir == desk.folder / "cp"
    assert session.bootstrap_peers == tuple(desk.site.bootstrap_peers)


def test_a_coordinator_starts_without_any_entrance(desk: Desk) -> None:
    desk.site.bootstrap_peers = []
    assert desk.run().code == 0


def test_the_end_of_the_run_ends_the_coordinator_once(desk: Desk) -> None:
    desk.state = "finished"
    assert desk.run().code == 7
    assert desk.signals == [signal.SIGTERM]


@pytest.mark.parametrize(("changes", "code"), [({"title": "New"}, 0), ({}, BEGAN_ANEW)])
def test_only_a_config_that_matters_begins_anew(
    desk: Desk, changes: dict[str, object], code: int
) -> None:
    def work(session: CoordinatorSession) -> None:
        new = changes or {"optimizer": OptimizerConfig(learning_rate=0.5)}
        desk.site.config = desk.site.config.model_copy(update={"version": 2, **new})
        Desk.report(desk, session)

    desk.report = work  # type: ignore[method-assign]
    assert desk.run().code == code
    assert len(desk.signals) == (1 if code else 0)
    fetched = desk.site.paths().count(f"/api/v1/runs/{SLUG}/config/")
    assert fetched == 1


def test_a_refused_snapshot_is_told_to_the_reporter_at_once(desk: Desk) -> None:
    desk.site.overrides[SNAPSHOTS] = lambda call: Answer(503, b"")

    def work(session: CoordinatorSession) -> None:
        with pytest.raises(ClientError):
            session.post_snapshot(SnapshotRequest(snapshot="x"))

    desk.report = work  # type: ignore[method-assign]
    assert desk.run().code == 0
    assert desk.site.paths().count(SNAPSHOTS) == 1


def test_a_coordinator_renews_its_pass_and_hears_who_is_shut_out(desk: Desk) -> None:
    site = desk.site
    site.config = config_make(report=ReportConfig(heartbeat_seconds=0.05))
    site.revocations = site.sign(
        Revocations(run=SLUG, seq=2, peer_ids=("QmMallory",)), TYP_REVOCATIONS
    )

    def work(session: CoordinatorSession) -> None:
        assert session.gate is not None
        first = session.gate.view.own_pass
        ends = time.monotonic() + 10
        while session.gate.view.own_pass == first or not session.gate.view.revoked:
            assert time.monotonic() < ends
            time.sleep(0.02)
        assert session.gate.view.revoked == {"QmMallory"}

    desk.report = work  # type: ignore[method-assign]
    assert desk.run().code == 0
    beats = [call for call in site.calls if call.path.endswith("/pass/")]
    assert beats
    assert not any(call.path.endswith("/receipts/") for call in site.calls)


def test_a_coordinator_that_may_not_is_told_why(desk: Desk) -> None:
    desk.site.banned = True
    ran = desk.run()
    assert ran.code == 3
    assert "suspended" in ran.err
