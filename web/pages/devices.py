"""A volunteer's machines."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from web.accounts.selectors import device_visible
from web.accounts.services import device_key_replace, device_rename, device_revoke
from web.pages.forms import DeviceNameForm
from web.pages.mine import device_rows, member_of, messages_for


@login_required
@require_safe
def devices_page(request: HttpRequest) -> HttpResponse:
    """The list."""
    user = member_of(request)
    context = {"devices": device_rows(user), "letters": messages_for(user)}
    return render(request, "pages/devices.html", context)


@login_required
@require_POST
def rename(request: HttpRequest, public_id: str) -> HttpResponse:
    """Give a machine another name."""
    device = device_visible(member_of(request), public_id)
    form = DeviceNameForm(request.POST)
    if form.is_valid():
        device_rename(device, form.cleaned_data["name"])
        messages.success(request, f"This machine is called {device.name} now.")
    else:
        messages.error(request, "A name has 1 to 80 characters.")
    return redirect("pages:devices")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, public_id: str) -> HttpResponse:
    """Ask, then take a machine's access away."""
    device = device_visible(member_of(request), public_id)
    if request.method != "POST":
        return render(request, "pages/device_revoke.html", {"device": device})
    device_revoke(member_of(request), device)
    messages.success(request, f"{device.name} has no access any more. Its samples stay counted.")
    return redirect("pages:devices")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def replace_key(request: HttpRequest, public_id: str) -> HttpResponse:
    """Ask, then give up a machine's key; say how it gets a new one."""
    device = device_visible(member_of(request), public_id)
    if request.method != "POST":
        return render(request, "pages/device_replace_key.html", {"device": device})
    device_key_replace(member_of(request), device)
    messages.success(
        request,
        f"The key of {device.name} is refused from now on. On the machine, run "
        "`beeyard logout --new-key`, then `beeyard join` within a day.",
    )
    return redirect("pages:devices")
