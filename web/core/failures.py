"""Error pages. They must come out even when templates or the database are broken."""

import logging
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.template.loader import select_template
from django.utils.html import escape

from training.protocol.errors import ErrorCode
from web.core.errors import AppError, error_headers, is_for_programs, problem_response
from web.core.requestid import request_id

logger = logging.getLogger(__name__)

_BARE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><main><h1>{title}</h1><p>{detail}</p><p>{remedy}</p><p><a href="/">Home</a></p></main></body>
</html>"""


def error_response(request: HttpRequest, error: AppError, **context: Any) -> HttpResponse:
    """Return an error as a problem document or as a page, whichever the caller reads.

    Pages are ``errors/<code>.html``, ``errors/<status>.html`` or ``errors/problem.html`` with
    ``problem`` (status, title, detail, code, remedy) and ``request_id``.
    """
    if is_for_programs(request):
        return problem_response(error)
    page = _page(request, error, context)
    return HttpResponse(page, status=error.status, headers=error_headers(error))


def _page(request: HttpRequest, error: AppError, context: dict[str, Any]) -> str:
    names = [f"errors/{name}.html" for name in (error.code, error.status, "problem")]
    problem = {
        name: getattr(error, name) for name in ("status", "title", "detail", "code", "remedy")
    }
    if problem["detail"] == f"{problem['title']}.":
        problem["detail"] = ""  # the page shows the title anyway
    try:
        page = select_template(names).render(
            {"problem": problem, "request_id": request_id()} | context, request
        )
    except Exception:
        logger.exception("the error page %s cannot be rendered", names[0])
        return _BARE.format(**{name: escape(str(value)) for name, value in problem.items()})
    return str(page)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400"""
    if isinstance(exception, RequestDataTooBig):
        return error_response(request, AppError(ErrorCode.BODY_TOO_LARGE))
    detail = "The request cannot be understood."
    return error_response(request, AppError(ErrorCode.BODY_INVALID, detail, status=400))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler403"""
    return error_response(request, AppError(ErrorCode.FORBIDDEN))


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """CSRF_FAILURE_VIEW"""
    logger.info("CSRF check failed: %s", reason)
    return error_response(request, AppError(ErrorCode.CSRF_FAILED))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404"""
    return error_response(request, AppError(ErrorCode.NOT_FOUND))


def too_many_requests(request: HttpRequest) -> HttpResponse:
    """handler429"""
    detail = "Too many tries from here in a short time."
    return error_response(request, AppError(ErrorCode.TOO_MANY_REQUESTS, detail, retry_after=60))


def server_error(request: HttpRequest) -> HttpResponse:
    """handler500"""
    detail = f"The error was written down under {request_id()}."
    return error_response(request, AppError(ErrorCode.INTERNAL_ERROR, detail))
