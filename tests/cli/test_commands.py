"""The commands beside training: quick, clear, and the same in JSON."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from tests.cli.conftest import Beeyard
from tests.client.stand_in_site import (
    SLUG,
    Answer,
    StandInSite,
    config_make,
    problem,
    receipt_make,
)
from training.client.errors import ClientError, ExitCode
from training.client.preflight import machine_checks
from training.client.status import StatusFile
from training.protocol.errors import ErrorCode
from training.protocol.names import REVOKE_PATH, TRAINER_VERSION, TYP_CONFIG, TYP_RECEIPT
from training.protocol.states import CreditState, Role

QUICK = """
import sys
from training.cli import main
home = sys.argv[1]
for words in (["version"], ["status"], ["verify", __file__], ["logout"]):
    main([*words, "--home", home])
main(["why", "http://127.0.0.1:9/runs/a/", "--home", home])
heavy = {"torch", "hivemind", "numpy", "transformers"} & set(sys.modules)
sys.exit(f"loaded {heavy}" if heavy else 0)
"""


def test_the_small_commands_load_neither_torch_nor_hivemind(tmp_path: Path) -> None:
    script = tmp_path / "quick.py"
    script.write_text(QUICK)
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    ran = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "home")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert ran.returncode == 0, ran.stderr
    assert TRAINER_VERSION in ran.stdout


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["fly"],
        ["join"],
        ["join", "http://a/runs/b/", "--port", "0"],
        ["join", "http://a/runs/b/", "--threads", "many"],
        ["coordinator", "http://a/runs/b/"],
        ["tokenizer"],
    ],
)
def test_wrong_usage_exits_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from training.cli import main

    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "usage: beeyard" in capsys.readouterr().err


def test_a_link_that_is_no_run_is_wrong_usage(beeyard: Beeyard) -> None:
    ran = beeyard("join", "http://127.0.0.1:8000/")
    assert ran.code == 2
    assert "Copy the address" in ran.err


def test_an_unforeseen_error_is_a_sentence_and_a_log(
    beeyard: Beeyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: str | None) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("training.cli.status.home_open", broken)
    ran = beeyard("status")
    log = beeyard.home.logs / "beeyard.log"
    assert ran.code == 1
    assert "ZeroDivisionError: oops" in ran.err
    assert str(log) in ran.err
    assert "Traceback" in log.read_text()


def test_version_in_words_and_in_json(beeyard: Beeyard) -> None:
    assert beeyard("version").out == f"beeyard {TRAINER_VERSION} (protocol 1)\n"
    expected = {"version": TRAINER_VERSION, "protocol_version": 1}
    assert json.loads(beeyard("version", "--json").out) == expected


def test_status_shows_what_runs_what_stopped_and_why(beeyard: Beeyard) -> None:
    assert "Nothing was started" in beeyard("status").out
    runs = beeyard.home.root / "runs" / "127.0.0.1_8000"
    alive = StatusFile(runs / "alive", role=Role.TRAINER)
    alive.update(phase="training", epoch=7, samples_total=12345)
    alive.stop()
    dead = StatusFile(runs / "dead", role=Role.COORDINATOR)
    dead.update(pid=2**22 - 1)
    remedy = "Wait a little."
    dead.fail(ClientError("swarm_lost", "it is away", remedy, exit_code=ExitCode.UNREACHABLE))
    dead.stop()
    (runs / "damaged").mkdir()
    (runs / "damaged" / "status.json").write_text("{")

    ran = beeyard("status")
    assert ran.code == 0
    for words in ("training", "12,345", str(os.getpid()), "failed", remedy):
        assert words in ran.out
    entries = json.loads(beeyard("status", "--json").out)
    assert [(e["run"], e["alive"], e["state"]) for e in entries] == [
        ("alive", True, "training"),
        ("dead", False, "failed"),
    ]


def test_why_prints_the_chain_and_the_remedy(
    site: StandInSite, beeyard: Beeyard, token_file: str
) -> None:
    ran = beeyard("why", site.run_url, "--token-file", token_file)
    assert ran.code == 0
    assert ran.out == "FAIL  not in the ledger\nWait.\n"
    waits = {"code": "ledger", "ok": None, "text": "provisional", "remedy": "Wait a little."}
    site.overrides[f"/api/v1/runs/{SLUG}/why/"] = lambda call: Answer(body={"links": [waits]})
    ran = beeyard("why", site.run_url, "--token-file", token_file)
    assert ran.out == "?     provisional\nWait a little.\n"
    body = {"links": [{"code": "ledger", "ok": True, "text": "in the ledger"}]}
    site.overrides[f"/api/v1/runs/{SLUG}/why/"] = lambda call: Answer(body=body)
    assert "Nothing is broken" in beeyard("why", site.run_url, "--token-file", token_file).out


def test_why_without_a_login_says_how_to_log_in(site: StandInSite, beeyard: Beeyard) -> None:
    ran = beeyard("why", site.run_url)
    assert ran.code == 3
    assert "beeyard join" in ran.err


def signed(beeyard: Beeyard, site: StandInSite, token: str) -> str:
    """Write a signed message to a file, on a machine that knows the site's keys."""
    beeyard("join", site.run_url)
    path = beeyard.home.root / "file.jws"
    path.write_text(token + "\n")
    return str(path)


def test_verify_tells_what_a_receipt_is_and_who_signed_it(
    site: StandInSite, beeyard: Beeyard
) -> None:
    path = signed(beeyard, site, site.sign(receipt_make(12, 512), TYP_RECEIPT))
    ran = beeyard("verify", path)
    assert ran.code == 0
    assert f"A receipt, signed by the site {site.origin}." in ran.out
    assert "epoch 12, samples 512" in ran.out
    said = {"state": CreditState.REJECTED, "reason": "nobody saw it", "code": "not_in_group"}
    rejected = receipt_make(12, 512).model_copy(update=said)
    ran = beeyard("verify", signed(beeyard, site, site.sign(rejected, TYP_RECEIPT)))
    assert "samples 512, state rejected, reason nobody saw it" in ran.out
    assert json.loads(beeyard("verify", path, "--json").out)["valid"] is True


def test_verify_knows_the_keys_a_site_had_before(site: StandInSite, beeyard: Beeyard) -> None:
    token = site.sign(site.config, TYP_CONFIG)
    beeyard("join", site.run_url)
    site.rotate(vouch=True)
    site.keys = site.keys[:1]
    ran = beeyard("verify", signed(beeyard, site, token))
    assert ran.code == 0
    assert "(an earlier key)" in ran.out


def test_verify_explains_an_expired_message_and_exits_with_5(
    site: StandInSite, beeyard: Beeyard
) -> None:
    site.clock_shift = -7200.0
    token = site.sign(site.config, TYP_CONFIG, timedelta(hours=1))
    site.clock_shift = 0.0
    ran = beeyard("verify", signed(beeyard, site, token))
    assert ran.code == 5
    assert "EXPIRED" in ran.out


def test_verify_refuses_changed_unknown_and_strange_files(
    site: StandInSite, beeyard: Beeyard, tmp_path: Path
) -> None:
    token = site.sign(site.config, TYP_CONFIG)
    with StandInSite() as stranger:
        unknown = stranger.sign(config_make(), TYP_CONFIG)
    changed = token[:-6] + "AAAAAA"
    other_type = site.sign(site.config, "other+jws")
    wrong_body = site.sign(receipt_make(1, 1), TYP_CONFIG)
    codes = {}
    for name in ("changed", "unknown", "other_type", "wrong_body"):
        ran = beeyard("verify", signed(beeyard, site, locals()[name]), "--json")
        codes[name] = (ran.code, json.loads(ran.out)["error"]["code"])
    assert codes == {
        "changed": (5, ErrorCode.BAD_SIGNATURE),
        "unknown": (5, ErrorCode.UNKNOWN_KEY),
        "other_type": (5, ErrorCode.BAD_SIGNATURE),
        "wrong_body": (5, ErrorCode.BODY_INVALID),
    }
    assert beeyard("verify", str(tmp_path / "missing")).code == 2


def test_logout_revokes_and_forgets(site: StandInSite, beeyard: Beeyard) -> None:
    beeyard("join", site.run_url)
    (token,) = beeyard.home.root.glob("sites/*/token.json")
    ran = beeyard("logout", site.origin)
    assert "Logged out" in ran.out
    assert not token.exists()
    assert REVOKE_PATH in site.paths()
    assert "Not logged in" in beeyard("logout", site.origin).out


def test_logout_with_a_new_key_makes_this_machine_new_keys(
    site: StandInSite, beeyard: Beeyard
) -> None:
    beeyard("join", site.run_url)
    paths = [beeyard.home.root / "device.jwk", beeyard.home.root / "swarm.key"]
    before = [path.read_bytes() for path in paths]
    refused = beeyard("logout", site.origin, "--new-key")
    assert refused.code == 2
    assert [path.read_bytes() for path in paths] == before
    assert "keys are deleted" in beeyard("logout", "--new-key").out
    assert not any(path.exists() for path in paths)
    beeyard("join", site.run_url)
    assert all(path.stat().st_mode & 0o077 == 0 for path in paths)
    assert [path.read_bytes() for path in paths] != before
    beeyard("logout", "--new-key")
    assert "No key was here" in beeyard("logout", "--new-key").out


def test_logout_without_the_site_forgets_and_says_what_is_left_to_do(
    site: StandInSite, beeyard: Beeyard
) -> None:
    beeyard("join", site.run_url)
    site.overrides[REVOKE_PATH] = lambda call: problem(ErrorCode.SERVICE_UNAVAILABLE)
    ran = beeyard("logout")
    assert ran.code == 0
    assert "My devices" in ran.out
    assert list(beeyard.home.root.glob("sites/*/token.json")) == []


def test_doctor_checks_machine_site_and_entrances(
    site: StandInSite, beeyard: Beeyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Importing torch in a process of its own is slow, and has its own test.
    quick = partial(machine_checks, import_all=False)
    monkeypatch.setattr("training.cli.doctor.machine_checks", lambda home, import_all: quick(home))
    beeyard("join", site.run_url)
    ran = beeyard("doctor", site.run_url, "--json")
    assert ran.code == 0
    checks = {check["code"]: check["ok"] for check in json.loads(ran.out)}
    assert {"python_version", "torch", "hivemind", "site", "clock", "bootstrap"} <= checks.keys()
    assert all(checks.values())
    down = beeyard("doctor", "http://127.0.0.1:9/")
    assert down.code == 4
    assert "FAIL  http://127.0.0.1:9 does not answer" in down.out


def test_a_machine_that_cannot_train_is_told_before_anything_is_sent(
    site: StandInSite, beeyard: Beeyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("_MIN_DISK", "_WISH_DISK"):
        monkeypatch.setattr(f"training.client.preflight.{limit}", 1 << 60)
    ran = beeyard("join", site.run_url)
    assert ran.code == 6
    assert "--home" in ran.err
    assert site.calls == []


def test_tasks_are_listed_with_their_parameters(beeyard: Beeyard) -> None:
    tasks = {task["name"]: task for task in json.loads(beeyard("tasks", "--json").out)}
    assert {"albert", "tiny"} <= tasks.keys()
    assert "hidden" in tasks["tiny"]["params_schema"]["properties"]


def test_a_tokenizer_is_trained_from_a_file_and_named_by_its_hash(
    beeyard: Beeyard, tmp_path: Path
) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "tokenizer.json"
    text.write_text("The bee is busy. The hive is full of honey.\n\n" * 20)
    words = ["tokenizer", "train", "--source", str(text), "--vocab", "60", "--json"]
    ran = beeyard(*words, "--out", str(out))
    assert ran.code == 0
    result = json.loads(ran.out)
    assert result["size"] == out.stat().st_size
    assert beeyard(*words, "--out", str(tmp_path / "no" / "folder")).code == 2
    text.unlink()
    assert beeyard(*words, "--out", str(out)).code == 2
