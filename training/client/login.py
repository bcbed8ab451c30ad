"""Logging a machine in from a terminal (RFC 8628): a short code, confirmed on the page."""

import threading
import time
from collections.abc import Callable

from pydantic import Field, ValidationError

from training.client.errors import UNEXPECTED, ClientError, ExitCode, PlatformError
from training.client.http import PlatformClient
from training.protocol.base import TolerantModel
from training.protocol.errors import ErrorCode
from training.protocol.names import (
    DEVICE_CODE_PATH,
    OAUTH_CLIENT_ID,
    OAUTH_SCOPES,
    TOKEN_PATH,
)

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_POLL_MARGIN = 0.25
"""Seconds above the interval, so that network jitter is not taken for impatience."""
MAX_CODES = 5


class DeviceCode(TolerantModel):
    """A code to show and the secret to poll with."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str = ""
    expires_in: float = Field(gt=0)
    interval: float = Field(default=5.0, gt=0)


class Login:
    """One try to log in; ``show`` is called with each code that a person must confirm."""

    def __init__(
        self,
        client: PlatformClient,
        *,
        show: Callable[[DeviceCode], None],
        stop: threading.Event,
        wall: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._show = show
        self._stop = stop
        self._wall = wall

    def run(self) -> dict[str, object]:
        """Return the token endpoint's answer once a person has confirmed a code.

        Raises:
            ClientError: denied, given up, or stopped.
        """
        for _ in range(MAX_CODES):
            code = self._code_request()
            self._show(code)
            answer = self._poll(code)
            if answer is not None:
                return answer
        raise _refused("no code was confirmed in time", "Run the command again when you are ready.")

    def _code_request(self) -> DeviceCode:
        form = {"client_id": OAUTH_CLIENT_ID, "scope": OAUTH_SCOPES}
        status, answer = self._client.form_post(DEVICE_CODE_PATH, form)
        try:
            return DeviceCode.model_validate(answer)
        except ValidationError as error:
            raise PlatformError(
                UNEXPECTED,
                f"the site gave no code for this login (status {status})",
                "Tell the organisers: terminal login may not be set up.",
                status=status,
            ) from error

    def _poll(self, code: DeviceCode) -> dict[str, object] | None:
        """Return the tokens, or None when the code expired."""
        interval, ends = code.interval, self._wall() + code.expires_in
        form = {
            "grant_type": _GRANT,
            "device_code": code.device_code,
            "client_id": OAUTH_CLIENT_ID,
        }
        while self._wall() < ends:
            if self._stop.wait(interval + _POLL_MARGIN):
                raise _refused("the login was stopped", "Run the command again.")
            status, answer = self._client.form_post(TOKEN_PATH, form)
            problem = answer.get("error")
            if status == 200 and answer.get("access_token"):
                return answer
            if problem == "slow_down":
                interval += 5.0
            elif problem in ("expired_token", "invalid_grant"):
                return None
            elif problem != "authorization_pending":
                raise _refused(
                    "the login was denied on the page"
                    if problem == "access_denied"
                    else f"the site refused the login ({str(problem)[:60]})",
                    "Run the command again and confirm the code with your own account.",
                )
        return None


def _refused(detail: str, remedy: str) -> ClientError:
    return ClientError(ErrorCode.NOT_AUTHENTICATED, detail, remedy, exit_code=ExitCode.NOT_ALLOWED)
