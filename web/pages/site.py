"""Pages about the site itself."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.views.decorators.http import require_safe


@require_safe
def trust(request: HttpRequest) -> HttpResponse:
    """What runs on a volunteer's machine, what is shown, what is kept."""
    return render(request, "pages/trust.html")


@require_safe
def robots(request: HttpRequest) -> HttpResponse:
    """Search engines may read what is public; nothing of an account is."""
    lines = ("User-agent: *", "Disallow: /accounts/", "Disallow: /account/", "Disallow: /devices/",
             "Disallow: /control/", "Disallow: /admin/", "Disallow: /identity/", "")  # fmt: skip
    return HttpResponse("\n".join(lines), content_type="text/plain; charset=utf-8")


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """For browsers that ask without reading the page."""
    return redirect(static("img/favicon.svg"), permanent=True)
