"""Pages of allauth that need something of ours around them."""

from allauth.idp.oidc.views import device_authorization
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_protect


@csrf_protect
def terminal_login_confirm(request: HttpRequest) -> HttpResponse:
    """Confirm a terminal's code, with the CSRF check that allauth exempts this page from.

    Without it a foreign page could log somebody else's machine in to a visitor's account.
    (``csrf_protect`` around the exempt view itself would do nothing.)
    """
    response: HttpResponse = device_authorization(request)
    return response
