"""Which addresses the site may call for people: never its own network, unless it is allowed."""

import asyncio
import contextlib
import ipaddress
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

ALLOWED_SCHEMES = ("https", "http")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_6TO4 = ipaddress.ip_network("2002::/16")


class RefusedAddress(ValueError):
    """The address must not be called; the text says why."""


def url_check(url: str) -> tuple[str, int]:
    """Return host and port of an address that may be worth calling (pure).

    Raises:
        RefusedAddress
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise RefusedAddress("This is not an address.") from None
    if parts.scheme not in ALLOWED_SCHEMES or not parts.hostname:
        raise RefusedAddress("The address begins with https:// (or http://) and a host.")
    if parts.username or parts.password:
        raise RefusedAddress("The address must not hold a name or password.")
    if not parts.hostname.isascii():
        raise RefusedAddress("The host is written in ASCII letters, such as xn--bcher-kva.example.")
    if not url.isprintable() or " " in url:
        raise RefusedAddress("The address must not hold spaces or control characters.")
    return parts.hostname, port or (443 if parts.scheme == "https" else 80)


def ip_is_public(text: str) -> bool:
    """Whether an IP address belongs to the open internet (pure)."""
    try:
        ip = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        elif ip in _NAT64 or ip in _6TO4 or ip.teredo is not None:
            return False  # an IPv4 address in other clothes
    return ip.is_global and not ip.is_multicast


async def host_resolve(host: str, port: int, *, is_private_allowed: bool) -> str:
    """Return one checked IP address of a host: connect to this one, not to the name again.

    A name that leads to a private address among others is refused as a whole.

    Raises:
        RefusedAddress: also when the name leads nowhere.
    """
    try:
        found = await _look_up(host, port)
    except (OSError, UnicodeError):
        raise RefusedAddress(f"The host {host} was not found.") from None
    addresses = [str(row[4][0]) for row in found]
    if not addresses:
        raise RefusedAddress(f"The host {host} was not found.")
    if not is_private_allowed and not all(map(ip_is_public, addresses)):
        raise RefusedAddress(f"The host {host} leads into a private network.")
    return addresses[0]


async def _look_up(host: str, port: int) -> list[Any]:
    """Return what the resolver says. Who stops waiting for it is not held up by it.

    It has no timeout of its own, and a loop that ends waits for the threads of its own executor.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Any]] = loop.create_future()

    def settle(found: list[Any], error: BaseException | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(found)
        else:
            answer.set_exception(error)

    def look() -> None:
        found: list[Any] = []
        failure: BaseException | None = None
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # nobody waits any more: the loop is closed
            loop.call_soon_threadsafe(settle, found, failure)

    threading.Thread(target=look, name="webhook-name", daemon=True).start()
    return await answer
