"""Addresses that volunteers copy from the page."""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from training.client.errors import ClientError, ExitCode

_RUN_PATH = re.compile(r"^/runs/([a-z0-9]+(?:-[a-z0-9]+)*)(?:/.*)?$")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class SiteAddress:
    """A site, and the run on it when the address names one."""

    scheme: str
    host: str
    port: int
    slug: str | None = None

    @property
    def origin(self) -> str:
        """``http://host:port``, without a default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (
            "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        )

    @property
    def folder(self) -> str:
        """Name of the site's folder in the beeyard home."""
        return f"{self.host.replace(':', '-')}_{self.port}"

    @property
    def is_loopback(self) -> bool:
        return self.host == "localhost" or self._ip_is("is_loopback")

    @property
    def is_exposed(self) -> bool:
        """Whether tokens would cross the internet in the clear."""
        return self.scheme == "http" and not self.is_loopback and not self._ip_is("is_private")

    def _ip_is(self, what: str) -> bool:
        try:
            return bool(getattr(ipaddress.ip_address(self.host), what))
        except ValueError:
            return False


def site_address_parse(url: str) -> SiteAddress:
    """Return the site that ``url`` names, with the run when it is a run's page.

    Raises:
        ClientError: not an http(s) address.
    """
    text = url.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError:
        raise _usage(f"{url!r} is not an address") from None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise _usage(f"{url!r} is not an address of a site")
    if parts.username or parts.password:
        raise _usage("an address with a password in it is not accepted")
    found = _RUN_PATH.match(parts.path)
    return SiteAddress(parts.scheme, parts.hostname, port, found.group(1) if found else None)


def run_address_parse(url: str) -> SiteAddress:
    """Return the address of a run's page.

    Raises:
        ClientError: the address names no run.
    """
    address = site_address_parse(url)
    if address.slug is None:
        raise _usage(f"{url!r} is not the address of a run")
    return address


def _usage(detail: str) -> ClientError:
    return ClientError(
        "address_invalid",
        detail,
        "Copy the address of the run's page, such as https://example.org/runs/my-run/.",
        exit_code=ExitCode.USAGE,
    )
