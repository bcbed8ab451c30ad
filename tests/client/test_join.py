"""Joining: what is accepted, and each thing that must not be."""

import base64
import hashlib
import json
from datetime import timedelta
from pathlib import Path

import pytest

from tests.client.conftest import ClientMaker
from tests.client.stand_in_site import TOKENIZER, Answer, Call, StandInSite, config_make, problem
from training.client.errors import ClientError, ExitCode, PlatformError
from training.client.join import Joiner
from training.client.store import Home
from training.protocol.claims import CheckpointManifest
from training.protocol.config import StartPoint
from training.protocol.envelope import sign
from training.protocol.errors import ErrorCode
from training.protocol.keys import key_generate
from training.protocol.names import TYP_CHECKPOINT, TYP_CONFIG, TYP_PASS


def refused(joiner: Joiner) -> ClientError:
    with pytest.raises(ClientError) as caught:
        joiner.join()
    assert caught.value.remedy
    return caught.value


def with_config(site: StandInSite, token: str) -> None:
    """Have the site answer joins with this config."""

    def answer(call: Call) -> Answer:
        site.overrides.clear()
        usual = site.answer(call)
        return Answer(body=usual.body | {"config": token})

    site.overrides[f"/api/v1/runs/{site.config.run}/join/"] = answer


def test_a_device_joins_and_keeps_what_it_was_given(
    site: StandInSite, joiner: Joiner, home: Home
) -> None:
    site.bootstrap_peers = ["/ip4/127.0.0.1/tcp/4000/p2p/QmPeer"]
    site.min_epoch = 7
    admission = joiner.join()

    assert admission.config.body == site.config
    assert admission.peer_pass.body.peer_id == home.swarm_key().peer_id
    assert admission.bootstrap_peers == tuple(site.bootstrap_peers)
    assert (admission.min_epoch, admission.username) == (7, "bob")
    (artifact,) = site.config.artifacts
    assert (admission.artifacts / artifact.sha256).read_bytes() == TOKENIZER
    assert (joiner.folder / "config.jws").read_text() == admission.config.token


def manifest_token(site: StandInSite, *, lineage: int, **values: float | str) -> str:
    manifest = CheckpointManifest(
        run=site.config.run,
        lineage=lineage,
        config_version=1,
        epoch=7,
        saved_at=site.now(),
        files=(),
        **values,  # type: ignore[arg-type]
    )
    return sign(
        manifest,
        typ=TYP_CHECKPOINT,
        key=key_generate(),
        issuer="http://coordinator",
        lifetime=timedelta(days=1),
        now=site.now(),
    )


def test_the_newest_checkpoint_of_this_lineage_is_kept_for_comparison(
    site: StandInSite, joiner: Joiner
) -> None:
    assert joiner.join().checkpoint is None
    site.checkpoint = manifest_token(site, lineage=1, schema_sha256="a" * 64, parameter_norm=5.0)
    checkpoint = joiner.join().checkpoint
    assert checkpoint is not None
    assert (checkpoint.epoch, checkpoint.schema_sha256) == (7, "a" * 64)
    for useless in ("nonsense", "a.b.c", manifest_token(site, lineage=2)):
        site.checkpoint = useless
        assert joiner.join().checkpoint is None


def test_a_checkpoint_of_an_older_lineage_counts_when_the_config_begins_with_it(
    site: StandInSite, joiner: Joiner
) -> None:
    site.checkpoint = manifest_token(site, lineage=1, parameter_norm=5.0)
    digest = hashlib.sha256(site.checkpoint.encode()).hexdigest()
    start = StartPoint(lineage=1, epoch=7, manifest_sha256=digest)
    site.config = site.config.model_copy(update={"lineage": 2, "version": 2, "start": start})
    checkpoint = joiner.join().checkpoint
    assert checkpoint is not None
    assert checkpoint.parameter_norm == 5.0
    site.checkpoint = manifest_token(site, lineage=1, parameter_norm=500.0)
    assert joiner.join().checkpoint is None


def test_joining_again_is_the_same_device_and_downloads_nothing_twice(
    site: StandInSite, joiner: Joiner
) -> None:
    first = joiner.join()
    second = joiner.join()
    assert first.peer_pass.body.peer_id == second.peer_pass.body.peer_id
    assert len([path for path in site.paths() if "/artifacts/" in path]) == 1


def test_everything_in_the_home_is_private(joiner: Joiner, home: Home) -> None:
    joiner.join()
    for path in [home.root, *home.root.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_changed_config_is_refused(site: StandInSite, joiner: Joiner) -> None:
    head, body, signature = site.sign(site.config, TYP_CONFIG).split(".")
    fields = json.loads(base64.urlsafe_b64decode(body + "=="))
    fields["optimizer"]["learning_rate"] = 10.0
    changed = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
    with_config(site, f"{head}.{changed}.{signature}")
    error = refused(joiner)
    assert (error.code, error.exit_code) == (ErrorCode.BAD_SIGNATURE, ExitCode.BAD_SIGNATURE)
    assert "Do not train" in error.remedy
    assert not (joiner.folder / "config.jws").exists()


def test_a_config_signed_with_a_strangers_key_is_refused(site: StandInSite, joiner: Joiner) -> None:
    joiner.join()
    site.keys = [key_generate()]
    error = refused(joiner)
    assert (error.code, error.exit_code) == (ErrorCode.UNKNOWN_KEY, ExitCode.BAD_SIGNATURE)
    assert "keys.json" in error.remedy


def test_a_pass_in_place_of_a_config_is_refused(site: StandInSite, joiner: Joiner) -> None:
    with_config(site, site.sign(site.config, TYP_PASS))
    error = refused(joiner)
    assert (error.code, error.exit_code) == (ErrorCode.BAD_SIGNATURE, ExitCode.BAD_SIGNATURE)
    assert TYP_CONFIG in error.detail


def test_an_expired_pass_is_refused_and_the_clock_is_named(
    site: StandInSite, joiner: Joiner
) -> None:
    site.pass_lifetime = timedelta(minutes=-1)
    error = refused(joiner)
    assert (error.code, error.exit_code) == (ErrorCode.ENVELOPE_EXPIRED, ExitCode.BAD_SIGNATURE)
    assert "clock" in error.remedy


def test_a_pass_for_another_lineage_is_refused(site: StandInSite, joiner: Joiner) -> None:
    with_config(site, site.sign(config_make(lineage=2), TYP_CONFIG))
    error = refused(joiner)
    assert error.exit_code == ExitCode.BAD_SIGNATURE
    assert "lineage" in error.detail


def test_the_config_of_another_run_is_refused(site: StandInSite, joiner: Joiner) -> None:
    with_config(site, site.sign(config_make(run="other-run"), TYP_CONFIG))
    error = refused(joiner)
    assert "other-run" in error.detail
    assert error.exit_code == ExitCode.BAD_SIGNATURE


def test_an_older_config_than_the_known_one_is_refused(site: StandInSite, joiner: Joiner) -> None:
    site.config = config_make(version=3)
    joiner.join()
    site.config = config_make(version=2)
    error = refused(joiner)
    assert (error.code, error.exit_code) == ("config_rolled_back", ExitCode.BAD_SIGNATURE)


def test_a_run_that_needs_a_newer_trainer_is_refused(site: StandInSite, joiner: Joiner) -> None:
    site.config = config_make(min_trainer_version="9.10.0")
    error = refused(joiner)
    assert (error.code, error.exit_code) == (ErrorCode.TRAINER_TOO_OLD, ExitCode.NOT_ALLOWED)


def test_an_unknown_run_is_named_as_such(
    site: StandInSite, client_make: ClientMaker, home: Home
) -> None:
    error = refused(Joiner(client_make(url=f"{site.origin}/runs/nothing-here/"), home))
    assert (error.code, error.exit_code) == (ErrorCode.RUN_NOT_FOUND, ExitCode.USAGE)


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        (ErrorCode.BANNED, ExitCode.NOT_ALLOWED),
        (ErrorCode.APPROVAL_PENDING, ExitCode.NOT_ALLOWED),
        (ErrorCode.DEVICE_REVOKED, ExitCode.NOT_ALLOWED),
        (ErrorCode.RUN_NOT_OPEN, ExitCode.NOT_ALLOWED),
        (ErrorCode.RUN_OVER, ExitCode.RUN_OVER),
        (ErrorCode.PEER_ID_TAKEN, ExitCode.NOT_ALLOWED),
    ],
)
def test_a_refusal_keeps_the_sites_code_and_remedy(
    site: StandInSite, joiner: Joiner, code: ErrorCode, exit_code: ExitCode
) -> None:
    site.overrides[f"/api/v1/runs/{site.config.run}/join/"] = lambda call: problem(code)
    error = refused(joiner)
    assert isinstance(error, PlatformError)
    assert (error.code, error.remedy, error.exit_code) == (code, code.info.remedy, exit_code)
    asked = [path for path in site.paths() if path.endswith("/join/")]
    assert len(asked) == 1, "final: it is not tried again"


def test_an_answer_that_was_lost_after_the_challenge_was_used_is_asked_for_anew(
    site: StandInSite, client_make: ClientMaker, home: Home
) -> None:
    def lose(call: Call) -> Answer:
        site.overrides.clear()
        site.answer(call)  # the site takes the proof, and its answer never arrives
        return Answer(503, b"")

    site.overrides[f"/api/v1/runs/{site.config.run}/join/"] = lose
    admission = Joiner(client_make(patience=10.0), home).join()
    assert admission.username == "bob"
    assert len([path for path in site.paths() if path.endswith("/challenge/")]) == 2


def test_a_cut_download_goes_on_where_it_stopped(
    site: StandInSite, client_make: ClientMaker, home: Home
) -> None:
    (artifact,) = site.config.artifacts
    path = f"/api/v1/artifacts/{artifact.sha256}/"

    def cut(call: Call) -> Answer:
        site.overrides.clear()
        return Answer(200, TOKENIZER, cut_at=100_000)

    site.overrides[path] = cut
    admission = Joiner(client_make(patience=10.0), home).join()
    assert (admission.artifacts / artifact.sha256).read_bytes() == TOKENIZER
    ranges = [call.headers.get("range") for call in site.calls if call.path == path]
    assert ranges == [None, "bytes=100000-"]


@pytest.mark.parametrize("data", [b"", TOKENIZER[:-1], TOKENIZER + b"!", TOKENIZER[:-1] + b"!"])
def test_an_artifact_with_other_bytes_is_refused(
    site: StandInSite, joiner: Joiner, data: bytes
) -> None:
    (artifact,) = site.config.artifacts
    site.artifacts[artifact.sha256] = data
    error = refused(joiner)
    assert (error.code, error.exit_code) == ("artifact_mismatch", ExitCode.BAD_SIGNATURE)
    assert list((joiner.folder / "artifacts").iterdir()) == []


def test_a_damaged_config_on_disk_says_which_file_to_delete(joiner: Joiner) -> None:
    joiner.join()
    path: Path = joiner.folder / "config.jws"
    path.write_text("rubbish")
    error = refused(joiner)
    assert error.code == "home_unusable"
    assert str(path) in error.remedy
