"""``beeyard join``: each thing that may happen has its exit code and its words."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.cli.conftest import BEGAN_ANEW, Beeyard
from tests.client.stand_in_site import (
    SLUG,
    Answer,
    Call,
    StandInSite,
    config_make,
    problem,
    receipt_make,
)
from training.client.status import status_read
from training.protocol.config import OptimizerConfig, ReportConfig
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_generate
from training.protocol.metrics import PeerMetrics
from training.protocol.names import TYP_CONFIG, TYP_PASS
from training.trainer.session import TrainerSession, TrainerUI

JOIN = f"/api/v1/runs/{SLUG}/join/"
PASS = f"/api/v1/runs/{SLUG}/pass/"


def until_stopped(session: TrainerSession, ui: TrainerUI) -> int:
    """A trainer that trains until it is told to stop."""
    ui.phase("training")
    assert session.control.stopping.wait(20)
    return 0


def quick(site: StandInSite) -> None:
    site.config = config_make(report=ReportConfig(heartbeat_seconds=0.05))


def test_a_volunteer_logs_in_joins_trains_and_leaves_well(
    site: StandInSite, beeyard: Beeyard
) -> None:
    site.polls = ["authorization_pending"]

    def train(session: TrainerSession, ui: TrainerUI) -> int:
        ui.phase("training")
        ui.line("epoch 1 is done")
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
        return until_stopped(session, ui)

    beeyard.trainer = train
    ran = beeyard("join", site.run_url, "--threads", "2", "--micro-batch", "4", "--port", "4567")
    assert ran.code == 0
    for words in ("ABCD-EFGH", "bob, device", "epoch 1 is done", "Leaving well", "counted"):
        assert words in ran.out
    (session,) = beeyard.sessions
    assert session.config == site.config
    assert session.bootstrap_peers == tuple(site.bootstrap_peers)
    assert (session.threads, session.micro_batch, session.port) == (2, 4, 4567)
    assert session.bind == "127.0.0.1"
    assert session.key.peer_id == beeyard.home.swarm_key().peer_id


def test_the_second_start_needs_no_login_and_is_the_same_device(
    site: StandInSite, beeyard: Beeyard
) -> None:
    beeyard("join", site.run_url)
    ran = beeyard("join", site.run_url)
    assert ran.code == 0
    assert "ABCD-EFGH" not in ran.out
    first, second = beeyard.sessions
    assert first.key.peer_id == second.key.peer_id


def test_metrics_are_signed_with_the_device_key(
    site: StandInSite, beeyard: Beeyard, token_file: str
) -> None:
    beeyard("join", site.run_url, "--token-file", token_file)
    (session,) = beeyard.sessions
    metrics = PeerMetrics(
        run=SLUG,
        lineage=1,
        peer_id=session.key.peer_id,
        config_version=1,
        epoch=0,
        samples_accumulated=0,
        samples_total=0,
        samples_per_second=0.0,
        taken_at=site.now(),
    )
    path = beeyard.home.root / "metrics.jws"
    path.write_text(session.sign_metrics(metrics))
    ran = beeyard("verify", str(path), "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["signer"] == "this device"


def test_headless_tokens_are_used_and_never_written_down(
    site: StandInSite, beeyard: Beeyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEEYARD_TOKEN", "good-token")
    assert beeyard("join", site.run_url).code == 0
    files = [path for path in beeyard.home.root.rglob("*") if path.is_file()]
    assert files
    assert all(b"good-token" not in path.read_bytes() for path in files)


def test_everything_the_command_leaves_behind_is_private(
    site: StandInSite, beeyard: Beeyard, token_file: str
) -> None:
    beeyard("join", site.run_url, "--token-file", token_file)
    loose = [p for p in beeyard.home.root.rglob("*") if stat.S_IMODE(p.stat().st_mode) & 0o077]
    assert [path for path in loose if path.suffix != ".log"] == []
    assert beeyard.home.logs.stat().st_mode & 0o077 == 0


def tampered(site: StandInSite) -> None:
    def answer(call: Call) -> Answer:
        site.overrides.clear()
        usual = site.answer(call)
        return Answer(body=usual.body | {"config": usual.body["config"][:-6] + "AAAAAA"})

    site.overrides[JOIN] = answer


def strange_type(site: StandInSite) -> None:
    def answer(call: Call) -> Answer:
        site.overrides.clear()
        usual = site.answer(call)
        return Answer(body=usual.body | {"config": site.sign(site.config, TYP_PASS)})

    site.overrides[JOIN] = answer


def strange_key(site: StandInSite) -> None:
    def answer(call: Call) -> Answer:
        site.overrides.clear()
        site.keys, known = [key_generate()], site.keys
        usual = site.answer(call)
        site.keys = known
        return usual

    site.overrides[JOIN] = answer


def joins_answer(site: StandInSite, answer: Answer) -> None:
    site.overrides[JOIN] = lambda call: answer


@pytest.mark.parametrize(
    ("fault", "exit_code", "code"),
    [
        (tampered, 5, ErrorCode.BAD_SIGNATURE),
        (strange_type, 5, ErrorCode.BAD_SIGNATURE),
        (strange_key, 5, ErrorCode.UNKNOWN_KEY),
        (lambda site: setattr(site, "banned", True), 3, ErrorCode.BANNED),
        (lambda site: site.tokens.clear(), 3, ErrorCode.TOKEN_INVALID),
        (lambda site: site.overrides.update({JOIN: lambda c: Answer(200, b"[")}), 4, None),
        (
            lambda site: site.overrides.update({JOIN: lambda c: problem(ErrorCode.RUN_OVER)}),
            7,
            None,
        ),
        (lambda site: site.bootstrap_peers.clear(), 4, "unreachable"),
        (lambda site: site.artifacts.update(dict.fromkeys(site.artifacts, b"x")), 5, None),
    ],
)
def test_a_fault_before_training_ends_with_its_code_and_a_remedy(
    site: StandInSite,
    beeyard: Beeyard,
    token_file: str,
    fault: object,
    exit_code: int,
    code: str | None,
) -> None:
    fault(site)  # type: ignore[operator]
    ran = beeyard("join", site.run_url, "--token-file", token_file, "--json")
    error = ran.json_lines()[-1]["error"]
    assert ran.code == error["exit_code"] == exit_code
    assert error["remedy"]
    assert code is None or error["code"] == code
    assert beeyard.sessions == []
    status = status_read(beeyard.home.status_files()[0])
    assert status is not None
    assert status.error is not None
    assert status.error.remedy == error["remedy"]


def test_an_unknown_run_is_a_usage_error_for_people_on_stderr(
    site: StandInSite, beeyard: Beeyard, token_file: str
) -> None:
    ran = beeyard("join", f"{site.origin}/runs/nothing/", "--token-file", token_file)
    assert ran.code == 2
    assert ran.err.startswith("beeyard: There is no such run.")
    assert "Check the address" in ran.err


def test_a_site_that_is_down_is_unreachable(beeyard: Beeyard, token_file: str) -> None:
    ran = beeyard("join", "http://127.0.0.1:9/runs/a/", "--token-file", token_file)
    assert ran.code == 4
    assert "does not answer" in ran.err


def test_a_clock_five_minutes_off_is_warned_of_and_trains_by_the_sites_time(
    site: StandInSite, beeyard: Beeyard, token_file: str
) -> None:
    site.clock_shift = 300.0
    ran = beeyard("join", site.run_url, "--token-file", token_file)
    assert ran.code == 0
    assert re.search(r"Warning: the clock is (299|300|301) s behind", ran.out)
    assert "time synchronisation" in ran.out
    (session,) = beeyard.sessions
    assert abs(session.clock.correction - 300) < 1
    assert session.gate is not None


def test_a_second_process_with_the_same_home_is_refused(
    site: StandInSite, beeyard: Beeyard, token_file: str
) -> None:
    def train(session: TrainerSession, ui: TrainerUI) -> int:
        command = [sys.executable, "-m", "training", "join", site.run_url, "--home"]
        command += [str(beeyard.home.root), "--token-file", token_file, "--json"]
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert second.returncode == 2, second.stderr
        error = json.loads(second.stdout.splitlines()[-1])["error"]
        assert error["code"] == "already_running"
        assert str(os.getpid()) in error["detail"]
        return 0

    beeyard.trainer = train
    assert beeyard("join", site.run_url, "--token-file", token_file).code == 0
    assert len(beeyard.sessions) == 1


def test_the_end_of_the_run_ends_the_trainer(
    site: StandInSite, beeyard: Beeyard, token_file: str
) -> None:
    quick(site)
    beeyard.trainer = until_stopped
    site.commands = ["finish", "upgrade"]
    ran = beeyard("join", site.run_url, "--token-file", token_file)
    assert ran.code == 7
    assert "has finished" in ran.out
    assert ran.out.count("A newer beeyard") <= 1


def test_a_new_config_that_matters_begins_anew_and_another_does_not(
    site: StandInSite, beeyard: Beeyard, token_file: str
) -> None:
    quick(site)

    def train(session: TrainerSession, ui: TrainerUI) -> int:
        site.config = site.config.model_copy(update={"version": 2, "title": "A new title"})
        time.sleep(0.4)
        assert not session.control.stopping.is_set()
        optimizer = OptimizerConfig(learning_rate=0.5)
        site.config = site.config.model_copy(update={"version": 3, "optimizer": optimizer})
        return until_stopped(session, ui)

    beeyard.trainer = train
    ran = beeyard("join", site.run_url, "--token-file", token_file)
    assert (ran.code, beeyard.restarts) == (BEGAN_ANEW, [1])
    assert "Config version 3" in ran.out


def test_a_forged_new_config_ends_the_training(
    site: StandInSite, beeyard: Beeyard, token_file: str
) -> None:
    quick(site)

    def train(session: TrainerSession, ui: TrainerUI) -> int:
        forged = site.sign(config_make(run="other-run", version=2), TYP_CONFIG)
        body = {"version": 2, "jws": forged, "sha256": "0" * 64, "config": {}, "diff": []}
        body["published_at"] = site.now().isoformat()
        site.overrides[f"/api/v1/runs/{SLUG}/config/"] = lambda call: Answer(body=body)
        site.config = site.config.model_copy(update={"version": 2})
        return until_stopped(session, ui)

    beeyard.trainer = train
    ran = beeyard("join", site.run_url, "--token-file", token_file)
    assert ran.code == 5
    assert "other-run" in ran.err


def test_new_receipts_are_told_while_training(
    site: StandInSite, beeyard: Beeyard, token_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(site)
    monkeypatch.setattr("training.client.heartbeat._RECEIPT_SECONDS", 0.1)

    def train(session: TrainerSession, ui: TrainerUI) -> int:
        time.sleep(0.3)
        site.receipts = [receipt_make(12, 512)]
        time.sleep(0.6)
        return 0

    beeyard.trainer = train
    ran = beeyard("join", site.run_url, "--token-file", token_file)
    assert ran.out.count("counted: 512 samples (epoch 12)") == 1


def crash(session: TrainerSession, ui: TrainerUI) -> int:
    raise RuntimeError("the swarm has bitten")


def test_a_trainer_that_breaks_is_begun_anew_and_its_traceback_is_in_the_log(
    site: StandInSite, beeyard: Beeyard, token_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    beeyard.trainer = crash
    monkeypatch.setenv("BEEYARD_RESTARTS", "3")
    ran = beeyard("join", site.run_url, "--token-file", token_file)
    assert (ran.code, beeyard.restarts) == (BEGAN_ANEW, [4])
    assert "the swarm has bitten" in ran.err
    assert "Trying again in" in ran.out
    log = (beeyard.home.logs / f"join-{SLUG}.log").read_text()
    assert "Traceback" in log
    assert "the swarm has bitten" in log


def test_once_ends_where_it_would_begin_anew(
    site: StandInSite, beeyard: Beeyard, token_file: str
) -> None:
    beeyard.trainer = crash
    ran = beeyard("join", site.run_url, "--token-file", token_file, "--once")
    assert (ran.code, beeyard.restarts) == (1, [])
    beeyard.trainer = lambda session, ui: 4
    assert beeyard("join", site.run_url, "--token-file", token_file, "--once").code == 4


@pytest.mark.parametrize(
    ("returned", "begins_anew"), [(4, True), (1, True), (6, False), (2, False)]
)
def test_only_failures_that_may_pass_begin_anew(
    site: StandInSite, beeyard: Beeyard, token_file: str, returned: int, begins_anew: bool
) -> None:
    beeyard.trainer = lambda session, ui: returned
    ran = beeyard("join", site.run_url, "--token-file", token_file)
    assert ran.code == (BEGAN_ANEW if begins_anew else returned)


def test_once_trained_a_trainer_waits_for_a_paused_run_or_a_site_that_is_away(
    site: StandInSite, beeyard: Beeyard, token_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.overrides[JOIN] = lambda call: problem(ErrorCode.RUN_NOT_OPEN)
    assert beeyard("join", site.run_url, "--token-file", token_file).code == 3
    monkeypatch.setenv("BEEYARD_RESTARTS", "1")
    assert beeyard("join", site.run_url, "--token-file", token_file).code == BEGAN_ANEW
    site.overrides[JOIN] = lambda call: problem(ErrorCode.BANNED)
    assert beeyard("join", site.run_url, "--token-file", token_file).code == 3


def test_a_login_that_was_ended_on_the_page_is_made_anew(
    site: StandInSite, beeyard: Beeyard
) -> None:
    beeyard("join", site.run_url)
    site.tokens.clear()
    site.refresh_tokens.clear()
    ran = beeyard("join", site.run_url)
    assert ran.code == 0
    assert "login of this machine has ended" in ran.out
    assert "ABCD-EFGH" in ran.out


def test_json_output_is_one_object_a_line(
    site: StandInSite, beeyard: Beeyard, token_file: str
) -> None:
    ran = beeyard("join", site.run_url, "--token-file", token_file, "--json")
    events = [line.get("event") for line in ran.json_lines()]
    assert "joined" in events


def test_an_unusable_token_file_is_a_usage_error(
    site: StandInSite, beeyard: Beeyard, tmp_path: Path
) -> None:
    path = tmp_path / "empty"
    assert beeyard("join", site.run_url, "--token-file", str(path)).code == 2
    path.write_text(" \n")
    assert beeyard("join", site.run_url, "--token-file", str(path)).code == 2
