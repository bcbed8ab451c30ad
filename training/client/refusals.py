"""The swarm's refusals in words: what the gate of another peer said, and what to do."""

from training.client.errors import ClientError, ExitCode
from training.protocol.admission import AdmissionAnswer, Verdict
from training.protocol.errors import ERRORS, ErrorCode

PASSING = frozenset(
    {
        ErrorCode.PASS_EXPIRED,
        ErrorCode.PASS_UNKNOWN_KEY,
        ErrorCode.PASS_WRONG_LINEAGE,
        ErrorCode.CLOCK_OFF,
    }
)
"""Refusals that a newer pass, config or measurement of the clock may end."""


def refusal_error(verdict: Verdict, *, clock_seconds: float = 0.0) -> ClientError:
    """Return the error for a refusal; ``clock_seconds``: the swarm's time minus this machine's."""
    code = ErrorCode(verdict.value)
    info = ERRORS[code]
    detail = f"the swarm refuses this peer: {info.title[0].lower()}{info.title[1:]}"
    if code is ErrorCode.CLOCK_OFF:
        side = "behind" if clock_seconds > 0 else "ahead of"
        detail = f"the swarm refuses this peer: its clock is {abs(clock_seconds):.0f} s {side} it"
    is_signature = code in (ErrorCode.PASS_BAD_SIGNATURE, ErrorCode.PASS_UNKNOWN_KEY)
    exit_code = ExitCode.BAD_SIGNATURE if is_signature else ExitCode.NOT_ALLOWED
    return ClientError(code, detail, info.remedy, exit_code=exit_code)


def refusal_of(answer: AdmissionAnswer | None, *, now: float) -> ClientError | None:
    """Return the error in another peer's answer; None when it would let us in, or is silent.

    ``now``: our time when the answer came, seconds since 1970.
    """
    if answer is None or answer.verdict is Verdict.ADMITTED:
        return None
    return refusal_error(answer.verdict, clock_seconds=answer.now - now)
