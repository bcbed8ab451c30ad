"""Reading what the site answers, and telling its refusals from a stranger's noise."""

import email.utils
from datetime import UTC, datetime
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from training.client.errors import UNEXPECTED, UNREACHABLE, ExitCode, PlatformError
from training.protocol.errors import Problem

T = TypeVar("T", bound=BaseModel)


def refusal_of(response: httpx.Response) -> PlatformError:
    """Return the error for an answer whose status is not a success."""
    wait = retry_after_of(response)
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        return _stranger(response, f"status {response.status_code} without an explanation", wait)
    remedy = problem.remedy
    if wait:
        remedy = f"{remedy} (The site asks to wait {wait:.0f} s.)"
    detail = problem.detail or problem.title
    return PlatformError(
        problem.code, detail, remedy, status=response.status_code, retry_after=wait
    )


def retry_after_of(response: httpx.Response) -> float | None:
    """Return the ``Retry-After`` header in seconds."""
    value = response.headers.get("Retry-After", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def model_of(response: httpx.Response, model: type[T]) -> T:
    """Return the body of a success.

    Raises:
        PlatformError: the body is not what the protocol says.
    """
    try:
        return model.model_validate_json(response.content)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _stranger(response, f"{first['msg']} {place}".strip()) from error


def json_of(response: httpx.Response) -> Any:
    """Return the JSON of a success."""
    try:
        return response.json()
    except ValueError as error:
        raise _stranger(response, "not JSON") from error


def unreachable(origin: str, error: httpx.HTTPError) -> PlatformError:
    """Return the error for a request that got no answer."""
    text = str(error) or type(error).__name__
    if "CERTIFICATE" in text.upper():
        return PlatformError(
            "certificate_invalid",
            f"the certificate of {origin} is not valid: {text}",
            "Check this machine's clock and the address; do not go on if both are right.",
            status=0,
        )
    return PlatformError(
        UNREACHABLE,
        f"{origin} does not answer: {text}",
        "Check the address and this machine's connection; the site may be restarting.",
        status=0,
    )


def redirected(response: httpx.Response, target: str) -> PlatformError:
    """Return the error for a redirect that leads to another site."""
    error = PlatformError(
        "redirected",
        f"{response.request.url.host} sends us on to {target}, which is not followed",
        "If you trust that address, use it instead.",
        status=response.status_code,
    )
    error.exit_code = ExitCode.UNREACHABLE
    return error


def _stranger(
    response: httpx.Response, what: str, retry_after: float | None = None
) -> PlatformError:
    return PlatformError(
        UNEXPECTED,
        f"{response.request.url} did not answer as Beeyard does ({what})",
        "Check the address; a proxy or another program may be answering there.",
        status=response.status_code,
        retry_after=retry_after,
    )
