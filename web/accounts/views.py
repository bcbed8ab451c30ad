"""Pages of allauth that need something of ours around them, or that nobody here uses."""

from allauth.idp.oidc.views import device_authorization, device_code
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from training.protocol.errors import ErrorCode
from web.core.errors import AppError
from web.core.ratelimit import rate_limit

DEVICE_CODES = "30/m/ip"
"""Raise it when a class of students logs in from behind one address."""


@csrf_protect
def terminal_login_confirm(request: HttpRequest) -> HttpResponse:
    """Confirm a terminal's code, with the CSRF check that allauth exempts this page from.

    Without it a foreign page could log somebody else's machine in to a visitor's account.
    (``csrf_protect`` around the exempt view itself would do nothing.)
    """
    response: HttpResponse = device_authorization(request)
    return response


@csrf_exempt
def terminal_login_begin(request: HttpRequest) -> HttpResponse:
    """Give a terminal its code. Each waits in the cache for minutes, so nobody gets many."""
    rate_limit(request, "device_code", DEVICE_CODES)
    response: HttpResponse = device_code(request)
    return response


def not_offered(request: HttpRequest) -> HttpResponse:
    """Stand for the parts of OpenID that terminal login does without.

    No client of ours asks there, and both of allauth's pages are exempt from Django's CSRF check.
    """
    raise AppError(ErrorCode.NOT_FOUND, "This site offers terminal login only.")
