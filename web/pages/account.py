"""A person's own account: public profile, tokens for programs."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from web.accounts.models import ApiToken
from web.accounts.selectors import tokens_for
from web.accounts.services import (
    token_issue,
    token_revoke,
    user_country_set,
    user_profile_public_set,
)
from web.pages.forms import CountryForm, ProfileForm, TokenForm
from web.pages.mine import member_of


@login_required
@require_safe
def account_page(request: HttpRequest) -> HttpResponse:
    """Name, e-mail, profile switch, tokens."""
    return _page(request)


@login_required
@require_POST
def profile_update(request: HttpRequest) -> HttpResponse:
    """Open or close the public profile."""
    form = ProfileForm(request.POST)
    if form.is_valid():
        user_profile_public_set(
            member_of(request), is_public=form.cleaned_data["is_profile_public"]
        )
        messages.success(request, "Saved.")
    return redirect("pages:account")


@login_required
@require_POST
def country_update(request: HttpRequest) -> HttpResponse:
    """Name a country, or none any more."""
    form = CountryForm(request.POST)
    if not form.is_valid():
        return _page(request, country_form=form)
    user_country_set(member_of(request), form.cleaned_data["country"])
    messages.success(request, "Saved.")
    return redirect("pages:account")


@login_required
@require_POST
def token_create(request: HttpRequest) -> HttpResponse:
    """Make a token and show it, this once."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, token_form=form)
    _, value = token_issue(member_of(request), ApiToken.Scope.READ, name=form.cleaned_data["name"])
    response = _page(request, new_token=value)
    response["Cache-Control"] = "no-store"
    return response


@login_required
@require_POST
def token_end(request: HttpRequest, token_id: int) -> HttpResponse:
    """End a token."""
    token = get_object_or_404(tokens_for(member_of(request)), pk=token_id)
    token_revoke(member_of(request), token)
    messages.success(request, "This token works no more.")
    return redirect("pages:account")


def _page(
    request: HttpRequest,
    *,
    token_form: TokenForm | None = None,
    country_form: CountryForm | None = None,
    new_token: str = "",
) -> HttpResponse:
    user = member_of(request)
    context = {
        "profile_form": ProfileForm(initial={"is_profile_public": user.is_profile_public}),
        "country_form": country_form or CountryForm(initial={"country": user.country}),
        "token_form": token_form or TokenForm(),
        "tokens": tokens_for(user).filter(revoked_at=None),
        "new_token": new_token,
    }
    return render(request, "pages/account.html", context)
