"""Files of runs: artifacts under their content hash, and checkpoints as their manifests say."""

import hashlib
import re
import shutil
import tempfile
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from training.protocol.claims import CheckpointManifest
from training.protocol.errors import ErrorCode
from training.protocol.names import TYP_CHECKPOINT
from web.accounts.models import Device
from web.core.audit import audit_record
from web.core.errors import AppError
from web.runs.models import Artifact, Checkpoint, Run
from web.runs.selectors import config_current
from web.runs.signals import run_changed
from web.runs.signed import device_key, signed_open

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,80}")


def artifact_path(sha256: str) -> Path:
    """Return where an artifact's bytes are."""
    return Path(settings.ARTIFACTS_DIR) / sha256


def artifact_store(source: Path | bytes, name: str) -> Artifact:
    """Keep a file under its content hash; the same bytes are kept once.

    Raises:
        AppError: BODY_INVALID (name, or an empty file).
    """
    if not _NAME.fullmatch(name):
        raise AppError(ErrorCode.BODY_INVALID, "name: letters, digits, dot, dash, underscore.")
    folder = Path(settings.ARTIFACTS_DIR)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".part-", delete=False) as part:
        if isinstance(source, bytes):
            part.write(source)
        else:
            with source.open("rb") as reader:
                shutil.copyfileobj(reader, part)
    path = Path(part.name)
    try:
        sha256, size = _digest(path), path.stat().st_size
        if not size:
            raise AppError(ErrorCode.BODY_INVALID, "This file is empty.")
        path.replace(artifact_path(sha256))
    finally:
        path.unlink(missing_ok=True)
    artifact, _ = Artifact.objects.get_or_create(
        sha256=sha256, defaults={"name": name, "size": size}
    )
    return artifact


@transaction.atomic
def checkpoint_register(
    run: Run, device: Device, jws: str, *, now: datetime | None = None
) -> Checkpoint:
    """Take in the manifest of a checkpoint that ``device``, the coordinator, has saved.

    Idempotent by lineage and epoch; a newer manifest of the same epoch replaces the older one,
    and as many of a lineage are listed as its coordinator keeps.

    Raises:
        AppError: BAD_SIGNATURE, UNKNOWN_KEY, ENVELOPE_EXPIRED, BODY_INVALID or CONFIG_MISSING.
    """
    config = config_current(run)
    manifest = signed_open(
        jws,
        typ=TYP_CHECKPOINT,
        model=CheckpointManifest,
        key=device_key(device),
        now=now or timezone.now(),
    ).body
    if manifest.run != run.slug:
        raise AppError(ErrorCode.BODY_INVALID, f"run: this manifest is of {manifest.run}.")
    if manifest.lineage > config.lineage or manifest.config_version > config.version:
        raise AppError(
            ErrorCode.BODY_INVALID,
            f"lineage: the run is at lineage {config.lineage}, config version {config.version}.",
        )
    start = config.body.get("start")
    if start and manifest.lineage < config.lineage and manifest.epoch > start["epoch"]:
        raise AppError(
            ErrorCode.BODY_INVALID, f"epoch: the run was rolled back to epoch {start['epoch']}."
        )
    checkpoint, is_new = Checkpoint.objects.update_or_create(
        run=run,
        lineage=manifest.lineage,
        epoch=manifest.epoch,
        defaults={
            "config_version": manifest.config_version,
            "files": [file.model_dump(mode="json") for file in manifest.files],
            "manifest": jws,
            "saved_at": manifest.saved_at,
        },
    )
    _prune(run, manifest.lineage, keep=int(config.body["checkpoint"]["keep"]))
    if is_new:
        text = f"The state after epoch {manifest.epoch} was saved"
        run_changed.send(Run, run=run, kind="checkpoint.saved", text=text)
        audit_record(
            device.user, "checkpoint.saved", run.slug, {"epoch": manifest.epoch, "by": device.name}
        )
    return checkpoint


def _prune(run: Run, lineage: int, *, keep: int) -> None:
    newest = run.checkpoints.filter(lineage=lineage).order_by("-epoch")
    kept = list(newest.values_list("pk", flat=True)[:keep])
    newest.exclude(pk__in=kept).delete()


def _digest(path: Path) -> str:
    with path.open("rb") as reader:
        return hashlib.file_digest(reader, "sha256").hexdigest()
