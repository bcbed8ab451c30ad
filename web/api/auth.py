"""How callers of the API show who they are. ``request.auth`` is a :class:`Credential`."""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.utils import timezone
from ninja.security.http import HttpAuthBase
from ninja.utils import check_csrf

from training.protocol.errors import ErrorCode
from web.accounts.credentials import SESSION_SCOPES, Credential, credential_of_token
from web.accounts.models import User
from web.core.errors import AppError

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

__all__ = [
    "AuthedRequest",
    "Credential",
    "coordinator_auth",
    "device_auth",
    "optional_auth",
    "session_or_token_auth",
]


class AuthedRequest(HttpRequest):
    """The type of requests that passed one of the checks below (a name for annotations)."""

    auth: Credential


class TokenAuth(HttpAuthBase):
    """A bearer token of the given scope, valid for the run in the path if it names a run."""

    openapi_scheme = "bearer"

    def __init__(self, scope: str) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> Credential:
        credential = _token_credential(request)
        if credential is None:
            raise AppError(ErrorCode.NOT_AUTHENTICATED, "This call needs a bearer token.")
        _scope_require(credential, self.scope)
        return credential


class SessionOrTokenAuth(TokenAuth):
    """A token, or the browser's session. Changing things by session needs the CSRF token."""

    def __call__(self, request: HttpRequest) -> Credential:
        credential = _token_credential(request) or _session_credential(request)
        if credential is None:
            raise AppError(ErrorCode.NOT_AUTHENTICATED)
        if "session" not in credential.scopes:
            is_safe = request.method in _SAFE_METHODS
            _scope_require(credential, self.scope if is_safe else "device")
        return credential


class OptionalAuth(TokenAuth):
    """Anybody; ``request.user`` is who is known. A token that is given must be good."""

    def __call__(self, request: HttpRequest) -> Any:
        credential = _token_credential(request) or _session_credential(request)
        return credential or AnonymousUser()


device_auth = TokenAuth("device")
coordinator_auth = TokenAuth("coordinator")
session_or_token_auth = SessionOrTokenAuth("read")
optional_auth = OptionalAuth("read")


def _token_credential(request: HttpRequest) -> Credential | None:
    header = request.headers.get("Authorization", "")
    if not header:
        return None
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "bearer" or not value.strip():
        raise AppError(ErrorCode.TOKEN_INVALID, "Send the header as 'Authorization: Bearer …'.")
    credential = credential_of_token(value.strip(), timezone.now())
    match = request.resolver_match
    slug = match.kwargs.get("slug") if match else None
    if credential.run_slug and slug and slug != credential.run_slug:
        raise AppError(
            ErrorCode.FORBIDDEN, f"This token is for the run {credential.run_slug} only."
        )
    request.user = credential.user
    return credential


def _session_credential(request: HttpRequest) -> Credential | None:
    user = request.user
    if not isinstance(user, User):
        return None
    if request.method not in _SAFE_METHODS and check_csrf(request):
        raise AppError(ErrorCode.CSRF_FAILED)
    return Credential(user=user, scopes=SESSION_SCOPES)


def _scope_require(credential: Credential, scope: str) -> None:
    if scope not in credential.scopes:
        raise AppError(ErrorCode.FORBIDDEN, f"This token has no scope '{scope}'.")
