"""Who may be in a swarm: the verdicts of the gate, and how a peer asks another for its own."""

from enum import StrEnum

from pydantic import Field

from training.protocol.base import TolerantModel


class Verdict(StrEnum):
    """What a peer of the swarm thinks of another one. Every refusal is an ``ErrorCode`` too."""

    ADMITTED = "admitted"
    PASS_NONE = "pass_none"
    PASS_EXPIRED = "pass_expired"
    PASS_WRONG_RUN = "pass_wrong_run"
    PASS_WRONG_LINEAGE = "pass_wrong_lineage"
    PASS_WRONG_PEER = "pass_wrong_peer"
    PASS_BAD_SIGNATURE = "pass_bad_signature"
    PASS_UNKNOWN_KEY = "pass_unknown_key"
    PEER_REVOKED = "peer_revoked"
    CLOCK_OFF = "clock_off"


class AdmissionQuestion(TolerantModel):
    """ "Would you let me in?" The asker's peer id is what the connection proves."""

    peer_pass: str = Field(default="", max_length=8_192)
    """JWS of the asker's pass; empty when it has none."""
    now: float
    """The asker's time, seconds since 1970."""


class AdmissionAnswer(TolerantModel):
    """The answer, and nothing that a stranger could use."""

    verdict: Verdict
    now: float
    """The answerer's time, seconds since 1970."""
