"""The site's HTTP API, as programs use it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import httpx
from pydantic import BaseModel

from training.client.address import SiteAddress
from training.client.answers import json_of, model_of, redirected, refusal_of, unreachable
from training.client.clock import SiteClock
from training.client.errors import PlatformError
from training.client.retry import Retry
from training.protocol.errors import ErrorCode
from training.protocol.names import API_PREFIX, TRAINER_VERSION

T = TypeVar("T", bound=BaseModel)
_TIMEOUT = httpx.Timeout(20.0, connect=8.0)
_MAX_REDIRECTS = 3
_RENEWABLE = frozenset({ErrorCode.TOKEN_EXPIRED, ErrorCode.TOKEN_INVALID})


class Credentials(Protocol):
    """Where the bearer token comes from."""

    def access_token(self) -> str | None:
        """Return the token to send, or None when there is no login yet."""

    def renew(self, client: "PlatformClient", refused: str) -> bool:
        """Get a token in place of ``refused``; False when that is not possible."""


class PlatformClient:
    """Calls of one site: retries, refusals as errors, token renewal, clock offset.

    Safe for use by several threads. ``patience`` of the retry bounds how long a call waits for
    a site that is down.
    """

    def __init__(
        self,
        address: SiteAddress,
        *,
        credentials: Credentials | None = None,
        retry: Retry | None = None,
        clock: SiteClock | None = None,
    ) -> None:
        self.address = address
        self.credentials = credentials
        self.retry = retry or Retry(15.0)
        self.clock = clock or SiteClock()
        # A proxy from the environment cannot reach this machine's own site.
        self._http = httpx.Client(
            base_url=address.origin,
            timeout=_TIMEOUT,
            # Without https there is nothing to verify, and loading the authorities takes time.
            verify=address.scheme == "https",
            trust_env=not address.is_loopback,
            headers={"User-Agent": f"beeyard/{TRAINER_VERSION}", "Accept": "application/json"},
        )

    def close(self) -> None:
        """Close idle connections."""
        self._http.close()

    def get(self, path: str, model: type[T]) -> T:
        """GET an API path (below ``/api/v1``)."""
        return model_of(self.request("GET", API_PREFIX + path), model)

    def get_json(self, path: str) -> Any:
        """GET an API path whose body is no model of the protocol."""
        return json_of(self.request("GET", API_PREFIX + path))

    def post(self, path: str, body: BaseModel, model: type[T]) -> T:
        """POST a model to an API path."""
        payload = body.model_dump_json(by_alias=True).encode()
        headers = {"Content-Type": "application/json"}
        response = self.request("POST", API_PREFIX + path, content=payload, headers=headers)
        return model_of(response, model)

    def form_post(self, path: str, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """POST a form to a login endpoint; its refusals (400, 401) are answers, not errors."""

        def attempt() -> httpx.Response:
            response = self._send("POST", path, data=dict(form))
            if response.status_code in (400, 401) or response.is_success:
                return response
            raise refusal_of(response)

        response = self.retry.run(attempt)
        value = json_of(response) if response.content else {}
        return response.status_code, value if isinstance(value, dict) else {}

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Return a success, after retries and one renewal of the token.

        Raises:
            PlatformError: refused, or not reachable within the patience.
        """
        token = self.credentials.access_token() if self.credentials else None
        try:
            return self.retry.run(lambda: self._attempt(method, path, token, options))
        except PlatformError as error:
            if error.code not in _RENEWABLE or token is None or self.credentials is None:
                raise
            if not self.credentials.renew(self, token):
                raise
        token = self.credentials.access_token()
        return self.retry.run(lambda: self._attempt(method, path, token, options))

    @contextmanager
    def download(self, path: str, *, start: int) -> Iterator[httpx.Response]:
        """Stream a public file from byte ``start``; one attempt, the caller retries."""
        headers = {"Accept-Encoding": "identity"}  # ranges and hashes are of the plain bytes
        if start:
            headers["Range"] = f"bytes={start}-"
        try:
            with self._http.stream("GET", path, headers=headers) as response:
                if not response.is_success:
                    response.read()
                    raise refusal_of(response)
                yield response
        except httpx.HTTPError as error:
            raise unreachable(self.address.origin, error) from error

    def _attempt(
        self, method: str, path: str, token: str | None, options: dict[str, Any]
    ) -> httpx.Response:
        headers = dict(options.get("headers", {}))
        if token:
            headers["Authorization"] = f"Bearer {token}"
        for _ in range(_MAX_REDIRECTS + 1):
            response = self._send(method, path, **(options | {"headers": headers}))
            if not response.is_redirect:
                break
            target = response.url.join(response.headers.get("Location", ""))
            if method != "GET" or not self._is_ours(target):
                raise redirected(response, str(target))
            path = target.raw_path.decode()
        if response.is_success:
            return response
        raise refusal_of(response)

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        sent = self.clock.wall()
        try:
            response = self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            raise unreachable(self.address.origin, error) from error
        self.clock.observe(response.headers.get("Date"), sent=sent, received=self.clock.wall())
        return response

    def _is_ours(self, url: httpx.URL) -> bool:
        ours = httpx.URL(self.address.origin)
        return (url.scheme, url.host, url.port) == (ours.scheme, ours.host, ours.port)
