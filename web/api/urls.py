"""The API, version 1. All calls of one path belong into one router: the first router that
knows a path answers 405 for methods that another one has."""

from training.protocol.names import PROTOCOL_VERSION
from web.api import account, coordinator, evaluations, history, public, site, trainer
from web.api.document import DocumentedAPI
from web.api.errors import error_handlers_add
from web.api.parsing import JsonParser

api = DocumentedAPI(
    title="Beeyard",
    version=f"{PROTOCOL_VERSION}.0.0",
    description=(
        "Runs, contributions and everything a trainer needs. Refusals are problem documents "
        "(RFC 9457) with a stable `code` and a `remedy`."
    ),
    urls_namespace="api",
    parser=JsonParser(),
)
error_handlers_add(api)
for _router, _tag in (
    (site.router, "site"),
    (account.router, "account"),
    (public.router, "runs"),
    (evaluations.router, "runs"),
    (history.router, "history"),
    (trainer.router, "trainer"),
    (coordinator.router, "coordinator"),
):
    api.add_router("", _router, tags=[_tag])

urlpatterns = api.urls[0]
