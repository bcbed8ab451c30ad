"""Keys and files of the site."""

from pathlib import Path as FilePath
from typing import Annotated

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Path, Router

from training.protocol.errors import ErrorCode
from web.api.caching import cacheable
from web.api.document import answers
from web.api.files import file_answer
from web.api.schemas import KeySet
from web.core.errors import AppError
from web.core.keys import jwks
from web.runs.models import Artifact

router = Router()
Sha256Path = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")]


@router.get("keys/", response=KeySet, exclude_none=True)
@cacheable(300)
def site_keys(request: HttpRequest) -> dict[str, list[dict[str, str]]]:
    """The keys that the site signs with: the current one, then those before it.

    A key's `vouched_by` is the previous key's word for it.
    """
    return jwks()


@router.get("artifacts/{sha256}/", openapi_extra=answers("application/octet-stream", partial=True))
def artifact(request: HttpRequest, sha256: Sha256Path) -> HttpResponseBase:
    """A file that a run's config names, such as a tokenizer, by its content hash."""
    row = Artifact.objects.filter(sha256=sha256).first()
    if row is None:
        raise AppError(ErrorCode.NOT_FOUND, "No config names a file with this hash.")
    path = FilePath(settings.ARTIFACTS_DIR) / sha256
    return file_answer(request, path, sha256=sha256, name=row.name)
