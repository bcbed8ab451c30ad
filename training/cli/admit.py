"""From a command line to an admission: log in if needed, join, and check this machine."""

import threading

from training.cli.output import Output
from training.cli.seat import Seat
from training.client.credentials import StoredLogin
from training.client.entrances import entrances_write
from training.client.errors import UNREACHABLE, ClientError, ExitCode
from training.client.join import Admission
from training.client.login import DeviceCode, Login
from training.client.preflight import CheckResult, clock_check, machine_checks
from training.client.reach import bootstrap_check
from training.protocol.errors import ErrorCode

_LOGIN_AGAIN = frozenset(
    {ErrorCode.TOKEN_EXPIRED, ErrorCode.TOKEN_INVALID, ErrorCode.NOT_AUTHENTICATED}
)
_ENTRANCE_WAITS = (3.0, 5.0, 10.0, 15.0, 30.0)
"""Seconds between the questions for living entrances: a coordinator may just be starting."""


def admit(seat: Seat, out: Output, stop: threading.Event) -> Admission:
    """Return the admission of a device that is ready to train.

    Raises:
        ClientError: refused, not reachable, not to be trusted, or this machine cannot train.
    """
    _machine_check(seat, out)
    if seat.address.is_exposed:
        out.tell(f"Warning: {seat.address.origin} is not encrypted: others can read your token.")
    if seat.credentials.access_token() is None:
        _login(seat, out, stop)
    try:
        admission = seat.joiner.join()
    except ClientError as error:
        if error.code not in _LOGIN_AGAIN or not isinstance(seat.credentials, StoredLogin):
            raise
        out.tell("The login of this machine has ended.", event="login_ended")
        seat.credentials.path.unlink(missing_ok=True)
        _login(seat, out, stop)
        admission = seat.joiner.join()
    entrances_write(seat.joiner.folder, admission.bootstrap_peers)
    _greet(seat, admission, out)
    return admission


def entrances_wait(seat: Seat, admission: Admission, stop: threading.Event) -> Admission:
    """Return an admission with at least one entrance that answers, asking again for a minute.

    Raises:
        ClientError: none answers; the sentence names them.
    """
    for wait in (*_ENTRANCE_WAITS, None):
        check = bootstrap_check(admission.bootstrap_peers)
        if check.ok:
            return admission
        if wait is None or stop.wait(wait):
            break
        admission = seat.joiner.join()
    raise ClientError(UNREACHABLE, check.text, check.remedy, exit_code=ExitCode.UNREACHABLE)


def _greet(seat: Seat, admission: Admission, out: Output) -> None:
    config = admission.config.body
    if admission.trust.is_first:
        names = ", ".join(key.thumbprint() for key in admission.trust.keys)
        out.tell(f"First contact with {seat.address.origin}: its key {names} is trusted from now.")
    out.tell(
        f"{admission.username}, device {admission.device_name}: joined {config.title} "
        f"({config.run}), config version {config.version}, signed by key {admission.config.key_id}",
        event="joined",
        user=admission.username,
        device=admission.device_name,
        run=config.run,
        config_version=config.version,
        peer_id=admission.peer_pass.body.peer_id,
    )
    _heed(clock_check(seat.client.clock), out)


def _machine_check(seat: Seat, out: Output) -> None:
    for check in machine_checks(seat.home.root, import_all=False):
        _heed(check, out)


def _heed(check: CheckResult, out: Output) -> None:
    """Tell a check that has something to say; one that stops training is raised."""
    if check.is_blocking:
        raise ClientError(check.code, check.text, check.remedy, exit_code=ExitCode.HARDWARE)
    if check.remedy:
        mark = "Note" if check.ok else "Warning"
        out.tell(f"{mark}: {check.text}. {check.remedy}", event="check", check=check.as_dict())


def _login(seat: Seat, out: Output, stop: threading.Event) -> None:
    if not isinstance(seat.credentials, StoredLogin):
        raise ClientError(
            ErrorCode.TOKEN_INVALID,
            "the given token is not accepted",
            "Make a new token on the page My devices.",
            exit_code=ExitCode.NOT_ALLOWED,
        )

    def show(code: DeviceCode) -> None:
        out.tell(
            f"To link this machine with your account, open\n"
            f"    {code.verification_uri_complete or code.verification_uri}\n"
            f"and confirm the code  {code.user_code}  "
            f"(it holds for {code.expires_in / 60:.0f} minutes; waiting)",
            event="login",
            verification_uri=code.verification_uri,
            verification_uri_complete=code.verification_uri_complete,
            user_code=code.user_code,
            expires_in=code.expires_in,
        )

    answer = Login(seat.client, show=show, stop=stop).run()
    seat.credentials.keep(answer, seat.client.clock.now())
    out.tell("Logged in.", event="logged_in")
