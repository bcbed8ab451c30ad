"""Whether the addresses of a swarm answer: a TCP connection to each, within a bound."""

import hashlib
import ipaddress
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from django.core.cache import cache

from web.runs.findings import Dialled

SECONDS = 2.0
"""For one address, and nearly for all of them: they are dialled at the same time."""
MAX_DIALLED = 8
REMEMBER_SECONDS = 15
"""A page that is loaded again and again dials no more often than this."""


def addresses_dial(addresses: Sequence[str]) -> tuple[Dialled, ...]:
    """Return what became of dialling the newest of these multiaddresses.

    Of the answer nothing is read: only whether the port took the connection.
    """
    chosen = list(dict.fromkeys(addresses))[:MAX_DIALLED]
    known = cache.get_many([_key(address) for address in chosen])
    new = [address for address in chosen if _key(address) not in known]
    found = dict(zip(new, _dial_all(new), strict=True))
    if found:
        cache.set_many({_key(a): (d.is_reached, d.text) for a, d in found.items()},
                       REMEMBER_SECONDS)  # fmt: skip
    return tuple(
        found.get(address) or Dialled(address, *known[_key(address)]) for address in chosen
    )


def target_of(address: str) -> tuple[str, int] | None:
    """Return host and TCP port of a multiaddress; None: it is not one that can be dialled."""
    parts = address.strip("/").split("/")
    if (
        not address.isascii()
        or len(parts) < 4
        or parts[0] not in ("ip4", "ip6", "dns", "dns4", "dns6")
    ):
        return None
    if parts[2] != "tcp" or not parts[3].isdecimal() or not 0 < len(parts[3]) <= 5:
        return None
    port = int(parts[3])
    if not 0 < port < 65_536:
        return None
    if parts[0].startswith("ip"):
        try:
            ipaddress.ip_address(parts[1])
        except ValueError:
            return None
    return parts[1], port


def _dial_all(addresses: Sequence[str]) -> list[Dialled]:
    if not addresses:
        return []
    pool = ThreadPoolExecutor(max_workers=len(addresses), thread_name_prefix="dial")
    jobs = [pool.submit(_dial, address) for address in addresses]
    # Looking up a name has no timeout of its own: who is late is left behind.
    wait(jobs, timeout=SECONDS + 0.5)
    pool.shutdown(wait=False, cancel_futures=True)
    return [
        job.result() if job.done() and not job.cancelled() else Dialled(address, False, "no answer")
        for job, address in zip(jobs, addresses, strict=True)
    ]


def _dial(address: str) -> Dialled:
    target = target_of(address)
    if target is None:
        return Dialled(address, False, "it is no address that can be dialled")
    started = time.monotonic()
    try:
        with socket.create_connection(target, timeout=SECONDS):
            return Dialled(address, True, f"{(time.monotonic() - started) * 1000:.0f} ms")
    except TimeoutError:
        return Dialled(address, False, f"no answer within {SECONDS:g} s")
    except (OSError, ValueError) as error:  # ValueError: a name that cannot be looked up
        return Dialled(address, False, (getattr(error, "strerror", "") or "no such host").lower())


def _key(address: str) -> str:
    return f"dial:{hashlib.sha256(address.encode()).hexdigest()}"
