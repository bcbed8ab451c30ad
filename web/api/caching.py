"""Answers that may be kept: ``Cache-Control``, ``ETag``, and 304 when nothing changed."""

import functools
import hashlib
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from ninja.decorators import decorate_view


def cacheable(seconds: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let callers keep the answer of an endpoint for ``seconds``, then ask whether it changed.

    Goes below the route: ``@router.get(…)``, then ``@cacheable(5)``. What a signed-in caller
    gets is never kept by proxies.
    """

    def run_wrap(run: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @functools.wraps(run)
        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            return _conditional(request, run(request, *args, **kwargs), seconds)

        return wrapped

    decorator: Callable[[Callable[..., Any]], Callable[..., Any]] = decorate_view(run_wrap)
    return decorator


def _conditional(request: HttpRequest, response: HttpResponse, seconds: int) -> HttpResponse:
    if response.status_code != 200 or response.streaming or request.method not in ("GET", "HEAD"):
        return response
    caller = getattr(request, "auth", None)
    is_public = caller is None or isinstance(caller, AnonymousUser)
    response.headers.setdefault(
        "Cache-Control", f"{'public' if is_public else 'private'}, max-age={seconds}"
    )
    patch_vary_headers(response, ("Authorization", "Cookie"))
    etag = f'W/"{hashlib.sha256(response.content).hexdigest()[:32]}"'
    response.headers.setdefault("ETag", etag)
    answer: HttpResponse = (
        get_conditional_response(request, etag=response.headers["ETag"], response=response)
        or response
    )
    return answer
