"""Calls of coordinators, and what they leave for everybody."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from ninja import Query, Router

from training.protocol.api import (
    CheckpointOut,
    CheckpointRequest,
    SnapshotRequest,
    SnapshotResponse,
)
from training.protocol.errors import ErrorCode
from web.api.auth import AuthedRequest, coordinator_auth, optional_auth
from web.api.caching import cacheable
from web.api.document import answers
from web.api.files import file_answer
from web.api.paging import Page, PageQuery, page_of
from web.api.rows import checkpoint_out
from web.api.run_schemas import RevocationsOut
from web.core.errors import AppError
from web.monitoring.ingest import snapshot_ingest
from web.monitoring.selectors import coordinator_device
from web.monitoring.services.revocations import revocations_current, revocations_signed
from web.runs.saved_files import saved_file_path
from web.runs.selectors import run_get_visible
from web.runs.services import checkpoint_register

router = Router()
MANIFEST = "manifest.jws"


@router.post("runs/{slug}/snapshots/", response=SnapshotResponse, auth=coordinator_auth)
def snapshots(request: AuthedRequest, slug: str, body: SnapshotRequest) -> SnapshotResponse:
    """What the coordinator saw. One with a known or older number is accepted and ignored."""
    run = run_get_visible(request.auth.user, slug)
    return snapshot_ingest(request.auth, run, body.snapshot, timezone.now())


@router.post("runs/{slug}/checkpoints/", response=CheckpointOut, auth=coordinator_auth)
def checkpoint_add(request: AuthedRequest, slug: str, body: CheckpointRequest) -> CheckpointOut:
    """Announce a saved state by its signed manifest. Idempotent by lineage and epoch."""
    run = run_get_visible(request.auth.user, slug)
    device = coordinator_device(request.auth, run)
    return checkpoint_out(checkpoint_register(run, device, body.manifest))


@router.get("runs/{slug}/checkpoints/", response=Page[CheckpointOut], auth=optional_auth)
@cacheable(10)
def checkpoints(request: HttpRequest, slug: str, page: Query[PageQuery]) -> dict[str, Any]:
    """Saved states that are kept, newest first."""
    rows = run_get_visible(request.user, slug).checkpoints.all()
    return page_of(rows, page, order="-saved_at", item=checkpoint_out)


@router.get(
    "runs/{slug}/checkpoints/{int:epoch}/{name}",
    auth=optional_auth,
    openapi_extra=answers("application/octet-stream", "application/jose", partial=True),
)
def checkpoint_file(
    request: HttpRequest, slug: str, epoch: int, name: str, lineage: int | None = None
) -> HttpResponseBase:
    """A file of a saved state, or its `manifest.jws`; of the newest lineage unless given."""
    run = run_get_visible(request.user, slug)
    found = run.checkpoints.filter(epoch=epoch)
    checkpoint = (found.filter(lineage=lineage) if lineage else found).first()
    if checkpoint is None:
        raise AppError(ErrorCode.NOT_FOUND, f"No state of epoch {epoch} is kept.")
    if name == MANIFEST:
        return HttpResponse(checkpoint.manifest, content_type="application/jose")
    listed = next((file for file in checkpoint.files if file["name"] == name), None)
    if listed is None:
        raise AppError(ErrorCode.NOT_FOUND, "The manifest lists no such file.")
    path = saved_file_path(run.slug, checkpoint, name)
    if path is None:
        raise AppError(ErrorCode.NOT_FOUND, "The manifest lists no such file.")
    return file_answer(
        request, path, sha256=listed["sha256"], name=f"{slug}-{epoch}-{name}",
        is_public=run.is_open_to_all,
    )  # fmt: skip


@router.get("runs/{slug}/revocations/", response=RevocationsOut, auth=optional_auth)
@cacheable(2)
def revocations(request: HttpRequest, slug: str) -> dict[str, Any]:
    """Peers that nobody in the swarm may deal with, numbered, signed by the site.

    Their account is suspended or barred from the run, their device was revoked, or they were
    replaced. `seq` grows with every change of the list.
    """
    revoked = revocations_current(run_get_visible(request.user, slug))
    return {
        "seq": revoked.seq,
        "made_at": revoked.made_at,
        "peer_ids": revoked.peer_ids,
        "jws": revocations_signed(revoked, timezone.now()),
    }
