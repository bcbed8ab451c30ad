"""Terminal login: the code, the polling, and its ends."""

import threading
import time

import pytest

from tests.client.conftest import ClientMaker
from tests.client.stand_in_site import Answer, StandInSite
from training.client import login as login_module
from training.client.errors import UNEXPECTED, ClientError, ExitCode
from training.client.login import MAX_CODES, DeviceCode, Login
from training.protocol.errors import ErrorCode
from training.protocol.names import DEVICE_CODE_PATH, OAUTH_CLIENT_ID, TOKEN_PATH


class Bench:
    """A login whose waits are recorded; the clock runs with them."""

    def __init__(self, client_make: ClientMaker) -> None:
        self.shown: list[DeviceCode] = []
        self.waits: list[float] = []
        self.stop = threading.Event()
        self.login = Login(
            client_make(), show=self.shown.append, stop=self.stop, wall=lambda: sum(self.waits)
        )
        self.stop.wait = self._wait  # type: ignore[method-assign]

    def _wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout or 0.0)
        return self.stop.is_set()


@pytest.fixture
def bench(client_make: ClientMaker) -> Bench:
    return Bench(client_make)


def refused(bench: Bench) -> ClientError:
    with pytest.raises(ClientError) as caught:
        bench.login.run()
    assert caught.value.remedy
    return caught.value


def test_a_confirmed_code_gives_tokens(site: StandInSite, bench: Bench) -> None:
    site.polls = ["authorization_pending", "authorization_pending"]
    answer = bench.login.run()
    assert answer["access_token"] in site.tokens
    (code,) = bench.shown
    assert code.verification_uri_complete.endswith(code.user_code)
    forms = [call.body for call in site.calls if call.path == TOKEN_PATH]
    assert {form["client_id"] for form in forms} == {OAUTH_CLIENT_ID}
    assert len(forms) == 3


def test_slow_down_makes_the_polls_five_seconds_slower(site: StandInSite, bench: Bench) -> None:
    site.polls = ["authorization_pending", "slow_down", "slow_down"]
    bench.login.run()
    steps = [round(b - a, 3) for a, b in zip(bench.waits, bench.waits[1:], strict=False)]
    assert steps == [0.0, 5.0, 5.0]


@pytest.mark.parametrize("error", ["expired_token", "invalid_grant"])
def test_an_expired_code_is_replaced_by_a_new_one(
    site: StandInSite, bench: Bench, error: str
) -> None:
    site.polls = ["authorization_pending", error, "authorization_pending"]
    bench.login.run()
    assert len(bench.shown) == 2
    assert bench.shown[0].device_code != bench.shown[1].device_code


def test_a_code_whose_time_is_over_is_not_polled_any_more(site: StandInSite, bench: Bench) -> None:
    site.code_seconds = 1.0
    site.polls = ["authorization_pending"] * 100
    error = refused(bench)
    assert (error.code, error.exit_code) == (ErrorCode.NOT_AUTHENTICATED, ExitCode.NOT_ALLOWED)
    assert len(bench.shown) == MAX_CODES


def test_a_denied_login_ends_at_once(site: StandInSite, bench: Bench) -> None:
    site.polls = ["access_denied"]
    error = refused(bench)
    assert error.exit_code == ExitCode.NOT_ALLOWED
    assert "denied" in error.detail
    assert len(bench.shown) == 1


def test_stopping_ends_a_waiting_login(
    site: StandInSite, client_make: ClientMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_module, "_POLL_MARGIN", 60.0)
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    started = time.monotonic()
    with pytest.raises(ClientError, match="stopped"):
        Login(client_make(), show=lambda code: None, stop=stop).run()
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, {"device_code": "x"}),
        Answer(200, b"<html>"),
        Answer(400, {"error": "invalid_client"}),
    ],
)
def test_a_site_without_terminal_login_is_told(
    site: StandInSite, bench: Bench, answer: Answer
) -> None:
    site.overrides[DEVICE_CODE_PATH] = lambda call: answer
    error = refused(bench)
    assert (error.code, error.exit_code) == (UNEXPECTED, ExitCode.UNREACHABLE)
