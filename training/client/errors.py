"""Errors of the client: what happened, what to do, and the exit code of the command line."""

from enum import IntEnum

from training.protocol.errors import ErrorCode

UNREACHABLE = "unreachable"
"""Code of a request that got no answer."""
UNEXPECTED = "unexpected_answer"
"""Code of an answer that is not Beeyard's."""


class ExitCode(IntEnum):
    """Exit codes of ``beeyard``; scripts rely on them."""

    FINE = 0
    FAILED = 1
    """Something unforeseen: a log file has the details."""
    USAGE = 2
    NOT_ALLOWED = 3
    UNREACHABLE = 4
    BAD_SIGNATURE = 5
    HARDWARE = 6
    RUN_OVER = 7


_EXIT_OF_CODE: dict[str, ExitCode] = {
    ErrorCode.RUN_OVER: ExitCode.RUN_OVER,
    ErrorCode.BAD_SIGNATURE: ExitCode.BAD_SIGNATURE,
    ErrorCode.UNKNOWN_KEY: ExitCode.BAD_SIGNATURE,
    ErrorCode.ENVELOPE_EXPIRED: ExitCode.BAD_SIGNATURE,
    ErrorCode.NOT_FOUND: ExitCode.USAGE,
    ErrorCode.MODEL_MISMATCH: ExitCode.USAGE,
    ErrorCode.RUN_NOT_FOUND: ExitCode.USAGE,
}


class ClientError(Exception):
    """A failure that is told in a sentence with a remedy, never as a traceback."""

    def __init__(self, code: str, detail: str, remedy: str, *, exit_code: ExitCode) -> None:
        super().__init__(detail)
        self.code = str(code)
        self.detail = detail
        self.remedy = remedy
        self.exit_code = exit_code


class PlatformError(ClientError):
    """The site's refusal, taken from its problem document.

    ``status`` is the HTTP status, 0 when there was no answer at all; ``retry_after`` is in
    seconds.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        remedy: str,
        *,
        status: int,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(code, detail, remedy, exit_code=exit_code_of(code, status))
        self.status = status
        self.retry_after = retry_after

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.code == UNREACHABLE or self.status == 429 or self.status >= 500


def exit_code_of(code: str, status: int) -> ExitCode:
    """Return the exit code for a problem document."""
    if code in _EXIT_OF_CODE:
        return _EXIT_OF_CODE[code]
    if code == UNEXPECTED or status == 0 or status == 429 or status >= 500:
        return ExitCode.UNREACHABLE
    return ExitCode.NOT_ALLOWED


def code_error(code: ErrorCode, detail: str) -> ClientError:
    """Return an error of the protocol that this machine found out by itself."""
    return ClientError(
        code, detail, code.info.remedy, exit_code=exit_code_of(code, code.info.status)
    )


def store_error(detail: str, remedy: str) -> ClientError:
    """Return the error for files of the beeyard folder that cannot be used."""
    return ClientError("home_unusable", detail, remedy, exit_code=ExitCode.USAGE)


def trust_error(code: str, detail: str, remedy: str) -> ClientError:
    """Return the error for signed messages that must not be trusted."""
    return ClientError(code, detail, remedy, exit_code=ExitCode.BAD_SIGNATURE)
