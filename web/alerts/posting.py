"""One signed message to one address, bounded in time and size."""

import asyncio
import hashlib
import hmac
import time
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import httpx

from web.alerts.guard import RefusedAddress, host_resolve, url_check

TOTAL_SECONDS = 10.0
"""From the name to the last byte that is read; raise it for receivers that work before they
answer."""
SIGNATURE_HEADER = "Beeyard-Signature"
DELIVERY_HEADER = "Beeyard-Delivery"
EVENT_HEADER = "Beeyard-Event"


@dataclass(frozen=True)
class Outcome:
    """How a delivery went. ``status`` None: there was no HTTP answer."""

    is_delivered: bool
    text: str
    status: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Letter:
    """What is sent where."""

    url: str
    body: bytes
    secret: str
    event: str
    delivery_id: str


def signature(secret: str, body: bytes, at: int) -> str:
    """Return the header's value: ``t=<unix time>,v1=<hex HMAC-SHA256 of "t.body">``."""
    text = str(at).encode() + b"." + body
    return f"t={at},v1={hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()}"


def letter_post(letter: Letter, *, is_private_allowed: bool = False) -> Outcome:
    """Post a letter and say how it went; never raises for what the other side does."""
    began = time.monotonic()
    try:
        outcome = asyncio.run(_bounded(letter, is_private_allowed))
    except RefusedAddress as error:
        outcome = Outcome(False, str(error))
    except TimeoutError:
        outcome = Outcome(False, f"No answer within {TOTAL_SECONDS:.0f} s.")
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        outcome = Outcome(False, f"The connection failed: {type(error).__name__}.")
    seconds = round(time.monotonic() - began, 3)
    return Outcome(outcome.is_delivered, outcome.text[:200], outcome.status, seconds)


async def _bounded(letter: Letter, is_private_allowed: bool) -> Outcome:
    async with asyncio.timeout(TOTAL_SECONDS):
        host, port = url_check(letter.url)
        ip = await host_resolve(host, port, is_private_allowed=is_private_allowed)
        return await _post(letter, host, port, ip)


async def _post(letter: Letter, host: str, port: int, ip: str) -> Outcome:
    parts = urlsplit(letter.url)
    checked = f"[{ip}]" if ":" in ip else ip
    address = urlunsplit((parts.scheme, f"{checked}:{port}", parts.path or "/", parts.query, ""))
    headers = {
        "Host": parts.netloc,
        "Content-Type": "application/json",
        "User-Agent": "Beeyard-Webhook/1",
        SIGNATURE_HEADER: signature(letter.secret, letter.body, int(time.time())),
        EVENT_HEADER: letter.event,
        DELIVERY_HEADER: letter.delivery_id,
    }
    # No proxies from the environment, no redirects: the checked address is the one that is called.
    # Its certificate has to be that of the host's name.
    async with (
        httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=TOTAL_SECONDS) as client,
        client.stream(
            "POST",
            address,
            content=letter.body,
            headers=headers,
            extensions={"sni_hostname": host},
        ) as response,
    ):
        # The body is not read: nobody needs it, and it may have no end.
        return _outcome(response.status_code)


def _outcome(status: int) -> Outcome:
    if 200 <= status < 300:
        return Outcome(True, "Delivered.", status)
    if 300 <= status < 400:
        return Outcome(False, "Answered with a redirect, which is not followed.", status)
    return Outcome(False, f"Answered with {status}.", status)
