"""Accounts and acts, for the site's staff."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.accounts.services import user_ban, user_unban
from web.control.access import DeskRequest, staff_only
from web.control.desk import people_search
from web.control.forms import BanForm
from web.core.errors import AppError

PER_PAGE = 50


@staff_only
@require_safe
def people_page(request: DeskRequest) -> HttpResponse:
    """Accounts, searched by name or address."""
    text = request.GET.get("q", "").strip()[:100]
    page = Paginator(people_search(text), PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "control/people.html", {"page": page, "text": text})


@staff_only
@require_http_methods(["GET", "HEAD", "POST"])
def person_ban(request: DeskRequest, username: str) -> HttpResponse:
    """Say what a suspension does; then suspend."""
    person = person_get(username)
    form = BanForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        user_ban(request.user, person, form.cleaned_data["reason"], expires_at=form.expires_at())
        messages.success(request, f"{person.username} is suspended.")
        return redirect("control:people")
    return render(request, "control/person_ban.html", {"person": person, "form": form})


@staff_only
@require_POST
def person_unban(request: DeskRequest, username: str) -> HttpResponse:
    """Lift a suspension."""
    person = person_get(username)
    user_unban(request.user, person)
    messages.success(request, f"{person.username} may log in again.")
    return redirect("control:people")


def person_get(username: str) -> User:
    """Return an account of a person."""
    person = User.objects.filter(username=username, is_service=False).first()
    if person is None:
        raise AppError(ErrorCode.NOT_FOUND, "There is no such account.")
    return person


def person_find(username: str) -> User | None:
    """Return the account that somebody means by a name, None when that is nobody or not clear."""
    found = list(User.objects.filter(username__iexact=username, is_service=False)[:2])
    exact = User.objects.filter(username=username, is_service=False).first()
    return exact or (found[0] if len(found) == 1 else None)
