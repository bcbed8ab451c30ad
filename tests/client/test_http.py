"""The client of the API: retries, renewals, redirects, clocks, strangers."""

import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.client.conftest import ClientMaker
from tests.client.stand_in_site import SLUG, Answer, Call, StandInSite, problem
from training.client.address import run_address_parse
from training.client.clock import SiteClock
from training.client.credentials import StoredLogin
from training.client.errors import UNEXPECTED, UNREACHABLE, ClientError, ExitCode, PlatformError
from training.client.files import json_read
from training.client.http import PlatformClient
from training.client.join import Joiner
from training.client.retry import Retry, retry_wait
from training.client.store import Home
from training.protocol.api import Challenge
from training.protocol.errors import ErrorCode

CHALLENGE = f"/runs/{SLUG}/challenge/"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def refused(client: PlatformClient) -> PlatformError:
    with pytest.raises(PlatformError) as caught:
        client.get(CHALLENGE, Challenge)
    assert caught.value.remedy
    return caught.value


def login_keep(folder: Path, access: str, refresh: str) -> StoredLogin:
    login = StoredLogin(folder)
    login.keep({"access_token": access, "refresh_token": refresh, "expires_in": 60}, NOW)
    return login


def test_a_site_that_is_down_and_comes_up_is_waited_for() -> None:
    port = free_port()
    address = run_address_parse(f"http://127.0.0.1:{port}/runs/{SLUG}/")
    client = PlatformClient(address, retry=Retry(20.0))
    over = threading.Event()

    def come_up() -> None:
        time.sleep(0.7)
        with StandInSite(port=port):
            over.wait(20)

    late = threading.Thread(target=come_up)
    late.start()
    started = time.monotonic()
    assert client.get_json("/keys/")["keys"]
    assert 0.6 < time.monotonic() - started < 10
    over.set()
    late.join()
    client.close()


def test_a_site_that_stays_down_is_unreachable() -> None:
    address = run_address_parse(f"http://127.0.0.1:{free_port()}/runs/{SLUG}/")
    client = PlatformClient(address, retry=Retry(0.0))
    error = refused(client)
    assert (error.code, error.exit_code) == (UNREACHABLE, ExitCode.UNREACHABLE)
    assert address.origin in error.detail
    client.close()


def test_stopping_ends_the_waiting_at_once() -> None:
    stop = threading.Event()
    address = run_address_parse(f"http://127.0.0.1:{free_port()}/runs/{SLUG}/")
    client = PlatformClient(address, retry=Retry(60.0, stop))
    threading.Timer(0.2, stop.set).start()
    started = time.monotonic()
    refused(client)
    client.close()
    assert time.monotonic() - started < 5


def test_the_wait_grows_has_jitter_and_keeps_to_retry_after() -> None:
    assert [retry_wait(n, None, 1.0) for n in range(4)] == [0.5, 1.0, 2.0, 4.0]
    assert retry_wait(50, None, 1.0) == 20.0
    assert retry_wait(0, None, 0.0) == 0.25
    assert retry_wait(0, 30.0, 0.5) > 30.0


def test_a_busy_site_is_asked_again_after_its_own_time(
    site: StandInSite, client_make: ClientMaker
) -> None:
    times: list[float] = []

    def busy(call: Call) -> Answer | None:
        times.append(time.monotonic())
        wait = {"Retry-After": "1"}
        return problem(ErrorCode.TOO_MANY_REQUESTS, headers=wait) if len(times) == 1 else None

    site.overrides["/api/v1" + CHALLENGE] = busy
    client_make(patience=10.0).get(CHALLENGE, Challenge)
    assert times[1] - times[0] >= 1.0


def test_a_wait_longer_than_our_patience_is_told(
    site: StandInSite, client_make: ClientMaker
) -> None:
    site.overrides["/api/v1" + CHALLENGE] = lambda call: problem(
        ErrorCode.SERVICE_UNAVAILABLE, headers={"Retry-After": "600"}
    )
    error = refused(client_make(patience=5.0))
    assert error.exit_code == ExitCode.UNREACHABLE
    assert "600 s" in error.remedy


def test_an_expired_token_is_renewed_and_the_new_login_is_on_disk(
    site: StandInSite, client_make: ClientMaker, tmp_path: Path
) -> None:
    login = login_keep(tmp_path, "old-token", "first")
    site.refresh_tokens["first"] = "old-token"
    client_make(login).get(CHALLENGE, Challenge)
    kept = json_read(login.path)
    assert kept is not None
    assert kept["access_token"] in site.tokens
    assert kept["refresh_token"] in site.refresh_tokens
    assert login.path.stat().st_mode & 0o777 == 0o600


def test_a_token_that_another_process_renewed_is_not_renewed_twice(
    site: StandInSite, client_make: ClientMaker, tmp_path: Path
) -> None:
    login = login_keep(tmp_path, "good-token", "second")
    assert login.renew(client_make(login), refused="old-token")
    assert login.access_token() == "good-token"
    assert site.calls == []


def test_a_login_that_cannot_be_renewed_says_how_to_log_in(
    client_make: ClientMaker, tmp_path: Path
) -> None:
    client = client_make(login_keep(tmp_path, "old-token", "revoked"))
    with pytest.raises(ClientError) as caught:
        client.get(CHALLENGE, Challenge)
    assert caught.value.exit_code == ExitCode.NOT_ALLOWED
    assert "beeyard join" in caught.value.remedy


@pytest.mark.parametrize(
    "body", [b"<html>Welcome to the hotel</html>", b"{", b"[]", b'{"challenge": 5}', b"\xff\xfe"]
)
def test_an_answer_of_a_stranger_is_told_from_ours(
    site: StandInSite, client_make: ClientMaker, body: bytes
) -> None:
    site.overrides["/api/v1" + CHALLENGE] = lambda call: Answer(200, body)
    error = refused(client_make())
    assert (error.code, error.exit_code) == (UNEXPECTED, ExitCode.UNREACHABLE)


def test_a_failure_without_a_problem_document_is_told(
    site: StandInSite, client_make: ClientMaker
) -> None:
    site.overrides["/api/v1" + CHALLENGE] = lambda call: Answer(404, b"<html>nginx</html>")
    error = refused(client_make())
    assert (error.code, error.status) == (UNEXPECTED, 404)


def test_a_redirect_to_another_host_is_not_followed_and_gets_no_token(
    site: StandInSite, client_make: ClientMaker
) -> None:
    with StandInSite() as other:
        target = {"Location": other.origin + "/api/v1" + CHALLENGE}
        site.overrides["/api/v1" + CHALLENGE] = lambda call: Answer(302, {}, target)
        error = refused(client_make())
        assert other.calls == []
    assert (error.code, error.exit_code) == ("redirected", ExitCode.UNREACHABLE)
    assert other.origin in error.detail


def test_a_redirect_within_the_site_is_followed(
    site: StandInSite, client_make: ClientMaker
) -> None:
    site.overrides["/old"] = lambda call: Answer(301, {}, {"Location": "/api/v1/keys/"})
    assert client_make().request("GET", "/old").json()["keys"]


@pytest.mark.parametrize("shift", [300.0, -300.0])
def test_a_clock_five_minutes_off_is_measured_and_does_not_hinder_joining(
    site: StandInSite, client_make: ClientMaker, home: Home, shift: float
) -> None:
    site.clock_shift = shift
    site.pass_lifetime = timedelta(minutes=2)
    client = client_make()
    Joiner(client, home).join()
    assert client.clock.is_off(290.0)
    assert client.clock.offset == pytest.approx(shift, abs=1.0)


def test_dates_of_whole_seconds_narrow_the_offset_down() -> None:
    clock = SiteClock()
    for moment in (100.1, 101.4, 102.7, 103.95):
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(moment + 5.0))
        clock.observe(date, sent=moment, received=moment + 0.01)
    assert clock.offset == pytest.approx(5.0, abs=0.2)
    clock.observe("garbage", sent=1.0, received=1.0)
    assert clock.offset == pytest.approx(5.0, abs=0.2)


def test_a_clock_that_was_set_anew_is_measured_anew() -> None:
    clock = SiteClock()
    clock.observe("Thu, 01 Jan 1970 00:05:00 GMT", sent=100.0, received=100.1)
    clock.observe("Thu, 01 Jan 1970 00:01:50 GMT", sent=110.0, received=110.1)
    assert clock.offset == pytest.approx(0.45, abs=0.1)
    assert not clock.is_off(1.0)
