"""Error codes of the API: what happened, whose move it is, and what to do."""

from enum import StrEnum
from typing import NamedTuple

from training.protocol.base import TolerantModel


class ErrorInfo(NamedTuple):
    status: int
    title: str
    remedy: str


class ErrorCode(StrEnum):
    NOT_AUTHENTICATED = "not_authenticated"
    TOKEN_INVALID = "token_invalid"
    TOKEN_EXPIRED = "token_expired"
    FORBIDDEN = "forbidden"
    BANNED = "banned"
    BARRED = "barred"
    APPROVAL_PENDING = "approval_pending"
    DEVICE_REVOKED = "device_revoked"
    CSRF_FAILED = "csrf_failed"
    NOT_FOUND = "not_found"
    RUN_NOT_FOUND = "run_not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    RUN_NOT_OPEN = "run_not_open"
    RUN_OVER = "run_over"
    CONFIG_MISSING = "config_missing"
    PEER_ID_TAKEN = "peer_id_taken"
    DEVICE_KEY_MISMATCH = "device_key_mismatch"
    NOT_JOINED = "not_joined"
    CHALLENGE_INVALID = "challenge_invalid"
    CHALLENGE_EXPIRED = "challenge_expired"
    PASS_EXPIRED = "pass_expired"
    PASS_NONE = "pass_none"
    PASS_WRONG_RUN = "pass_wrong_run"
    PASS_WRONG_LINEAGE = "pass_wrong_lineage"
    PASS_WRONG_PEER = "pass_wrong_peer"
    PASS_BAD_SIGNATURE = "pass_bad_signature"
    PASS_UNKNOWN_KEY = "pass_unknown_key"
    PEER_REVOKED = "peer_revoked"
    CLOCK_OFF = "clock_off"
    BAD_SIGNATURE = "bad_signature"
    UNKNOWN_KEY = "unknown_key"
    ENVELOPE_EXPIRED = "envelope_expired"
    BODY_INVALID = "body_invalid"
    BODY_TOO_LARGE = "body_too_large"
    REQUEST_TOO_SLOW = "request_too_slow"
    TRAINER_TOO_OLD = "trainer_too_old"
    MODEL_MISMATCH = "model_mismatch"
    TOO_MANY_REQUESTS = "too_many_requests"
    SERVICE_UNAVAILABLE = "service_unavailable"
    INTERNAL_ERROR = "internal_error"

    @property
    def info(self) -> ErrorInfo:
        return ERRORS[self]


ERRORS: dict[ErrorCode, ErrorInfo] = {
    ErrorCode.NOT_AUTHENTICATED: ErrorInfo(
        401, "You are not logged in", "Log in on the page, or run `beeyard join` again."
    ),
    ErrorCode.TOKEN_INVALID: ErrorInfo(
        401, "This token is not known", "Run `beeyard logout`, then `beeyard join` again."
    ),
    ErrorCode.TOKEN_EXPIRED: ErrorInfo(
        401, "This token has expired", "Refresh it, or run `beeyard join` again."
    ),
    ErrorCode.FORBIDDEN: ErrorInfo(
        403, "You may not do this", "Ask an organiser of this run for access."
    ),
    ErrorCode.BANNED: ErrorInfo(
        403, "This account is suspended", "Write to the organisers if you think it is a mistake."
    ),
    ErrorCode.BARRED: ErrorInfo(
        403,
        "You are barred from this run",
        "Write to the run's organiser if you think it is a mistake; other runs are open to you.",
    ),
    ErrorCode.APPROVAL_PENDING: ErrorInfo(
        403,
        "This run asks for approval before somebody joins",
        "Ask on the run's page, under Join; once you are approved, run `beeyard join` again.",
    ),
    ErrorCode.DEVICE_REVOKED: ErrorInfo(
        403, "This device was revoked", "Run `beeyard logout`, then `beeyard join` to link it anew."
    ),
    ErrorCode.CSRF_FAILED: ErrorInfo(
        403, "The request did not come from our page", "Reload the page and try again."
    ),
    ErrorCode.NOT_FOUND: ErrorInfo(404, "Nothing is here", "Check the address."),
    ErrorCode.RUN_NOT_FOUND: ErrorInfo(
        404, "There is no such run", "Check the address of the run, or log in if it is private."
    ),
    ErrorCode.METHOD_NOT_ALLOWED: ErrorInfo(
        405, "This method is not offered here", "See /api/v1/docs for what is."
    ),
    ErrorCode.RUN_NOT_OPEN: ErrorInfo(
        409, "This run takes no trainers now", "Watch the run's page; it opens and pauses there."
    ),
    ErrorCode.RUN_OVER: ErrorInfo(
        409, "This run has finished", "Choose another run on the home page."
    ),
    ErrorCode.CONFIG_MISSING: ErrorInfo(
        409, "This run has no published config yet", "Wait until its organiser publishes one."
    ),
    ErrorCode.PEER_ID_TAKEN: ErrorInfo(
        409,
        "This peer identity belongs to another device",
        "Delete swarm.key in the beeyard folder so that a new one is made, and join again.",
    ),
    ErrorCode.DEVICE_KEY_MISMATCH: ErrorInfo(
        409,
        "This login belongs to a device with another key",
        "Run `beeyard logout`, then `beeyard join`: the machine becomes a new device of yours.",
    ),
    ErrorCode.NOT_JOINED: ErrorInfo(
        409, "This device has not joined the run", "Run `beeyard join` with the run's address."
    ),
    ErrorCode.CHALLENGE_INVALID: ErrorInfo(
        422, "The answer to the challenge is not right", "Fetch a new challenge and sign that one."
    ),
    ErrorCode.CHALLENGE_EXPIRED: ErrorInfo(
        410, "The challenge has expired", "Fetch a new challenge; check this machine's clock."
    ),
    ErrorCode.PASS_EXPIRED: ErrorInfo(
        410, "The pass has expired", "Ask for a fresh pass; check this machine's clock."
    ),
    ErrorCode.PASS_NONE: ErrorInfo(
        403,
        "The swarm takes no peer without a pass",
        "Enter with `beeyard join` and the run's page.",
    ),
    ErrorCode.PASS_WRONG_RUN: ErrorInfo(
        403, "The pass is for another run", "Run `beeyard join` with the address of this run."
    ),
    ErrorCode.PASS_WRONG_LINEAGE: ErrorInfo(
        403,
        "The pass is for another lineage of the run",
        "The run's model changed: run `beeyard join` again to get the new config and pass.",
    ),
    ErrorCode.PASS_WRONG_PEER: ErrorInfo(
        403,
        "The pass is made out to another peer",
        "Run `beeyard join` on this machine: a pass is good for one swarm key only.",
    ),
    ErrorCode.PASS_BAD_SIGNATURE: ErrorInfo(
        403, "The pass is not what the site signed", "Run `beeyard join` again for a new pass."
    ),
    ErrorCode.PASS_UNKNOWN_KEY: ErrorInfo(
        403,
        "The pass is signed with a key that the swarm does not know",
        "Check that the run's address is right. After a change of the site's key, wait a minute "
        "and join again.",
    ),
    ErrorCode.PEER_REVOKED: ErrorInfo(
        403,
        "The run's organisers took this peer's access away",
        "Write to the organisers if you think it is a mistake.",
    ),
    ErrorCode.CLOCK_OFF: ErrorInfo(
        403,
        "This machine's clock is too far from the swarm's",
        "Switch on time synchronisation, such as `timedatectl set-ntp true`, and join again.",
    ),
    ErrorCode.BAD_SIGNATURE: ErrorInfo(
        422, "The signature does not fit", "Sign the exact bytes with the registered key."
    ),
    ErrorCode.UNKNOWN_KEY: ErrorInfo(
        422, "The signing key is not known here", "Join again, or pin the site's keys anew."
    ),
    ErrorCode.ENVELOPE_EXPIRED: ErrorInfo(
        410, "The signed message has expired", "Sign it again; check this machine's clock."
    ),
    ErrorCode.BODY_INVALID: ErrorInfo(
        422, "The request is not as expected", "Compare it with /api/v1/docs."
    ),
    ErrorCode.BODY_TOO_LARGE: ErrorInfo(
        413, "The request is too large", "Send less in one request."
    ),
    ErrorCode.REQUEST_TOO_SLOW: ErrorInfo(
        408, "The request did not arrive in time", "Send it again, over a faster line."
    ),
    ErrorCode.TRAINER_TOO_OLD: ErrorInfo(
        426, "This trainer is too old for the run", "Install the version the run's page offers."
    ),
    ErrorCode.MODEL_MISMATCH: ErrorInfo(
        409,
        "This machine's model is not the run's",
        "Install the version the run's page offers and join again. If it stays, tell the "
        "organisers: the run's config and its state do not belong together.",
    ),
    ErrorCode.TOO_MANY_REQUESTS: ErrorInfo(
        429, "Too many requests", "Wait as long as Retry-After says."
    ),
    ErrorCode.SERVICE_UNAVAILABLE: ErrorInfo(
        503, "A part of the site is not available", "It is our fault; try again in a minute."
    ),
    ErrorCode.INTERNAL_ERROR: ErrorInfo(
        500, "Something broke on our side", "Try again; tell the organisers if it stays."
    ),
}


class Problem(TolerantModel):
    """An RFC 9457 problem document, as every error of the API is sent."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    remedy: str
