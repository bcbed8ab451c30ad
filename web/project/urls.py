"""All HTTP addresses."""

from django.contrib import admin
from django.urls import include, path

from web.accounts.views import not_offered, terminal_login_begin, terminal_login_confirm
from web.api.figures import metrics
from web.api.health import healthz, readyz
from web.api.urls import api

handler400 = "web.core.failures.bad_request"
handler403 = "web.core.failures.permission_denied"
handler404 = "web.core.failures.page_not_found"
handler429 = "web.core.failures.too_many_requests"  # allauth's limits ask for it
handler500 = "web.core.failures.server_error"

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("api/v1/", api.urls),
    path("identity/o/device", terminal_login_confirm),
    path("identity/o/api/device/code", terminal_login_begin),
    path("identity/o/authorize", not_offered),
    path("identity/o/logout", not_offered),
    path("", include("allauth.idp.urls")),
    path("accounts/", include("allauth.account.urls")),
    path("admin/", admin.site.urls),
    path("control/", include("web.control.urls")),
    path("", include("web.pages.urls")),
]
