"""A small real site on loopback: real sockets, real signatures, faults on demand.

It speaks the part of the API that programs use, as protocol.md describes it. What a test wants
to go wrong is a plain attribute (``banned``, ``clock_shift``, …) or an entry in ``overrides``.
"""

import hashlib
import json
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs

from joserfc.jwk import OKPKey
from pydantic import BaseModel

from tests.client.stand_in_checks import proof_check, swarm_der
from training.protocol.claims import KeyVouch, PeerPass, Receipt
from training.protocol.config import Artifact, RunConfig, TaskConfig
from training.protocol.envelope import sign
from training.protocol.errors import ERRORS, ErrorCode
from training.protocol.keys import key_generate, public_jwk
from training.protocol.names import (
    API_PREFIX,
    DEVICE_CODE_PATH,
    REVOKE_PATH,
    TOKEN_PATH,
    TYP_CONFIG,
    TYP_KEY,
    TYP_PASS,
    TYP_RECEIPT,
)
from training.protocol.states import CreditState

SLUG = "tiny-run"
TOKENIZER = b'{"version": "1.0", "a": "tokenizer"}' * 4000


@dataclass
class Answer:
    """What goes back; ``body`` is JSON unless it is bytes."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    cut_at: int | None = None
    """Close the connection after this many bytes."""


@dataclass(frozen=True)
class Call:
    """A request as the site saw it."""

    method: str
    path: str
    token: str
    body: Any
    headers: dict[str, str]


def problem(code: ErrorCode, *, headers: dict[str, str] | None = None) -> Answer:
    """A problem document as the site sends them."""
    info = ERRORS[code]
    body = {"type": "about:blank", "title": info.title, "status": info.status}
    body |= {"detail": info.title, "code": code, "remedy": info.remedy}
    return Answer(info.status, body, headers or {})


def config_make(**changes: Any) -> RunConfig:
    """A run config whose task is ``tiny``."""
    fields: dict[str, Any] = {
        "run": SLUG,
        "title": "A tiny run",
        "version": 1,
        "task": TaskConfig(name="tiny"),
        "artifacts": (
            Artifact(
                name="tokenizer.json",
                sha256=hashlib.sha256(TOKENIZER).hexdigest(),
                size=len(TOKENIZER),
            ),
        ),
    }
    return RunConfig(**(fields | changes))


class StandInSite:
    """Use as a context manager; attributes may change while it runs."""

    def __init__(self, *, port: int = 0) -> None:
        self.keys: list[OKPKey] = [key_generate()]
        self.vouches: dict[str, str] = {}
        self.config = config_make()
        self.bootstrap_peers: list[str] = []
        self.artifacts = {hashlib.sha256(TOKENIZER).hexdigest(): TOKENIZER}
        self.tokens = {"good-token"}
        self.expired = {"old-token"}
        self.refresh_tokens: dict[str, str] = {}
        self.banned = False
        self.clock_shift = 0.0
        self.pass_lifetime = timedelta(minutes=30)
        self.commands: list[str] = []
        self.messages: list[dict[str, Any]] = []
        self.revocations = ""
        self.receipts: list[Receipt] = []
        self.polls: list[str] = []
        """Errors of the next polls for a device code; then it is granted."""
        self.code_seconds = 60.0
        self.overrides: dict[str, Callable[[Call], Answer | None]] = {}
        """By path; None goes on to the usual answer."""
        self.calls: list[Call] = []
        self.challenges: set[str] = set()
        self.joins: dict[str, dict[str, Any]] = {}
        """The last join request of each token."""
        self.min_epoch = 0
        self.checkpoint = ""
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.site = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def run_url(self) -> str:
        return f"{self.origin}/runs/{SLUG}/"

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time() + self.clock_shift, UTC)

    def sign(self, body: BaseModel, typ: str, lifetime: timedelta = timedelta(days=365)) -> str:
        return sign(
            body, typ=typ, key=self.keys[0], issuer=self.origin, lifetime=lifetime, now=self.now()
        )

    def rotate(self, *, vouch: bool) -> None:
        """Sign with a new key from now on; the old one is published beside it."""
        new, old = key_generate(), self.keys[0]
        if vouch:
            body = KeyVouch(jwk=public_jwk(new))
            self.vouches[new.thumbprint()] = self.sign(body, TYP_KEY)
        self.keys = [new, old]

    def paths(self) -> list[str]:
        return [call.path for call in self.calls]

    def answer(self, call: Call) -> Answer:
        self.calls.append(call)
        override = self.overrides.get(call.path)
        changed = override(call) if override else None
        if changed is not None:
            return changed
        if call.path in (DEVICE_CODE_PATH, TOKEN_PATH, REVOKE_PATH):
            return self._oauth(call)
        path = call.path.removeprefix(API_PREFIX)
        if path == "/keys/":
            return Answer(body={"keys": [self._jwk(key) for key in self.keys]})
        if found := re.fullmatch(r"/artifacts/([0-9a-f]{64})/", path):
            return self._artifact(call, found.group(1))
        if not path.startswith(f"/runs/{SLUG}/"):
            return problem(ErrorCode.RUN_NOT_FOUND)
        return self._denied(call) or self._run(call, path.removeprefix(f"/runs/{SLUG}/"))

    def _jwk(self, key: OKPKey) -> dict[str, str]:
        vouch = self.vouches.get(key.thumbprint())
        return public_jwk(key) | ({"vouched_by": vouch} if vouch else {})

    def _denied(self, call: Call) -> Answer | None:
        if call.token in self.expired:
            return problem(ErrorCode.TOKEN_EXPIRED)
        if call.token not in self.tokens:
            return problem(ErrorCode.TOKEN_INVALID if call.token else ErrorCode.NOT_AUTHENTICATED)
        return problem(ErrorCode.BANNED) if self.banned else None

    def _run(self, call: Call, what: str) -> Answer:
        if what == "challenge/":
            challenge = secrets.token_urlsafe(24)
            self.challenges.add(challenge)
            ends = self.now() + timedelta(minutes=5)
            return Answer(body={"challenge": challenge, "expires_at": ends.isoformat()})
        if what == "config/":
            body = {"version": self.config.version, "jws": self.sign(self.config, TYP_CONFIG)}
            body |= {"sha256": "0" * 64, "config": {}, "diff": []}
            return Answer(body=body | {"published_at": self.now().isoformat()})
        if what == "join/":
            return self._join(call)
        if what == "pass/":
            if call.token not in self.joins:
                return problem(ErrorCode.NOT_JOINED)
            body = {"pass": self._pass(self.joins[call.token]), "commands": self.commands}
            body |= {"messages": self.messages}
            body |= {"bootstrap_peers": self.bootstrap_peers, "revocations": self.revocations}
            return Answer(body=body | {"config_version": self.config.version})
        if what == "receipts/":
            items = [self._receipt(receipt) for receipt in self.receipts]
            return Answer(body={"items": items, "next": None})
        if what == "why/":
            link = {"code": "ledger", "ok": False, "text": "not in the ledger", "remedy": "Wait."}
            return Answer(body={"links": [link]})
        return problem(ErrorCode.NOT_FOUND)

    def _join(self, call: Call) -> Answer:
        refused = proof_check(call.body, run=SLUG, challenges=self.challenges, now=self.now())
        if refused:
            return problem(refused)
        self.joins[call.token] = call.body
        return Answer(
            body={
                "device_id": "dev1",
                "device_name": call.body["device_name"] or "a device",
                "username": "bob",
                "config": self.sign(self.config, TYP_CONFIG),
                "pass": self._pass(call.body),
                "bootstrap_peers": self.bootstrap_peers,
                "min_epoch": self.min_epoch,
                "checkpoint": self.checkpoint,
            }
        )

    def _pass(self, join: dict[str, Any]) -> str:
        der = swarm_der(join)
        body = PeerPass(
            sub="bob",
            device="dev1",
            run=SLUG,
            lineage=self.config.lineage,
            peer_id=join["peer_id"],
            key_thumbprint=hashlib.sha256(der).hexdigest(),
            role=join["role"],
        )
        return self.sign(body, TYP_PASS, self.pass_lifetime)

    def _receipt(self, receipt: Receipt) -> dict[str, Any]:
        fields = receipt.model_dump(mode="json", include={"epoch", "samples", "state", "reason"})
        return fields | {"jws": self.sign(receipt, TYP_RECEIPT)}

    def _artifact(self, call: Call, sha256: str) -> Answer:
        if sha256 not in self.artifacts:
            return problem(ErrorCode.NOT_FOUND)
        data = self.artifacts[sha256]
        if found := re.fullmatch(r"bytes=(\d+)-", call.headers.get("range", "")):
            return Answer(206, data[int(found.group(1)) :])
        return Answer(200, data)

    def _oauth(self, call: Call) -> Answer:
        if call.path == REVOKE_PATH:
            self.tokens.discard(call.body["token"])
            return Answer(200, b"")
        if call.path == DEVICE_CODE_PATH:
            uri = f"{self.origin}/identity/o/device"
            body = {"device_code": secrets.token_urlsafe(8), "user_code": "ABCD-EFGH"}
            body |= {"verification_uri": uri, "expires_in": self.code_seconds, "interval": 0.05}
            return Answer(body=body | {"verification_uri_complete": f"{uri}?code=ABCD-EFGH"})
        if call.body["grant_type"] == "refresh_token":
            if self.refresh_tokens.pop(call.body["refresh_token"], None) is None:
                return Answer(400, {"error": "invalid_grant"})
        elif self.polls:
            return Answer(400, {"error": self.polls.pop(0)})
        access, refresh = secrets.token_urlsafe(8), secrets.token_urlsafe(8)
        self.tokens.add(access)
        self.refresh_tokens[refresh] = access
        return Answer(body={"access_token": access, "refresh_token": refresh, "expires_in": 3600})


def receipt_make(epoch: int, samples: int, **changes: Any) -> Receipt:
    """A receipt of bob's device."""
    fields: dict[str, Any] = {"run": SLUG, "lineage": 1, "epoch": epoch, "samples": samples}
    fields |= {"user": "bob", "device": "dev1", "state": CreditState.CONFIRMED}
    return Receipt(**(fields | changes))


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that are killed or stopped leave broken connections behind."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve(None)

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Type", "").startswith("application/json"):
            self._serve(json.loads(raw))
        else:
            self._serve({name: values[0] for name, values in parse_qs(raw.decode()).items()})

    def _serve(self, body: Any) -> None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        headers = {name.lower(): value for name, value in self.headers.items()}
        path = self.path.split("?")[0]
        answer = self._site.answer(Call(self.command, path, token, body, headers))
        data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(data)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: answer.cut_at])
        self.close_connection = self.close_connection or answer.cut_at is not None

    @property
    def _site(self) -> StandInSite:
        return self.server.site  # type: ignore[attr-defined,no-any-return]

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string(time.time() + self._site.clock_shift)

    def log_message(self, format: str, *args: object) -> None:
        """Tests read ``calls`` instead."""
