"""``beeyard join`` when somebody does not want this device any more."""

import pytest

from tests.cli.conftest import Beeyard
from tests.cli.test_join import PASS, quick, until_stopped
from tests.client.stand_in_site import StandInSite, problem
from training.client.refusals import refusal_error
from training.protocol.admission import Verdict
from training.protocol.errors import ErrorCode
from training.trainer.session import TrainerSession, TrainerUI


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [(ErrorCode.BANNED, 3), (ErrorCode.BARRED, 3), (ErrorCode.RUN_OVER, 7)],
)
def test_a_refusal_during_training_ends_it(
    site: StandInSite, beeyard: Beeyard, token_file: str, code: ErrorCode, exit_code: int
) -> None:
    quick(site)
    beeyard.trainer = until_stopped
    site.overrides[PASS] = lambda call: problem(code)
    ran = beeyard("join", site.run_url, "--token-file", token_file)
    assert ran.code == exit_code
    assert code.info.remedy in ran.err


@pytest.mark.parametrize(
    ("code", "words"),
    [(ErrorCode.BANNED, "account is suspended"), (None, "took this peer's access away")],
)
def test_a_peer_that_the_swarm_shuts_out_is_told_why_by_the_site_if_it_says_so(
    site: StandInSite, beeyard: Beeyard, token_file: str, code: ErrorCode | None, words: str
) -> None:
    def train(session: TrainerSession, ui: TrainerUI) -> int:
        site.overrides[PASS] = lambda call: problem(code) if code else None
        raise refusal_error(Verdict.PEER_REVOKED)

    beeyard.trainer = train
    ran = beeyard("join", site.run_url, "--token-file", token_file)
    assert ran.code == 3
    assert words in ran.err
    assert len(beeyard.sessions) == 1, "it does not try again"
