"""Configs: checked, signed, chained, and signed again before they expire."""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone
from pydantic import ValidationError

from training.protocol.config import RunConfig, StartPoint
from training.protocol.envelope import peek_key_id
from training.protocol.errors import ErrorCode
from training.protocol.names import TYP_CONFIG
from training.protocol.states import RunState
from web.accounts.models import User
from web.accounts.names import public_name
from web.core.audit import audit_record
from web.core.errors import AppError
from web.core.keys import site_sign
from web.runs.config_diff import config_diff, is_compatible
from web.runs.draft_body import body_own
from web.runs.lifecycle import OVER
from web.runs.models import Artifact, Checkpoint, Run, RunConfigVersion
from web.runs.selectors import config_current, lineage_path
from web.runs.services.runs import organiser_require
from web.runs.signals import run_changed

_MAX_PROBLEMS = 5


def config_check(
    run: Run, draft: Mapping[str, Any], *, previous: RunConfigVersion | None = None
) -> RunConfig:
    """Return the config that publishing ``draft`` would sign.

    Raises:
        AppError: BODY_INVALID, with the dotted path of each field that does not fit.
    """
    body = {"title": run.title, **body_own(draft), "run": run.slug, "version": 1, "lineage": 1}
    if previous is not None:
        body |= {
            "version": previous.version + 1,
            "lineage": previous.lineage,
            "start": previous.body.get("start"),
            "previous_sha256": previous.sha256,
        }
    try:
        config = RunConfig.model_validate(body)
    except ValidationError as error:
        raise AppError(ErrorCode.BODY_INVALID, _problems(error)) from error
    _artifacts_require(config)
    if previous is not None and not is_compatible(previous.body, config.model_dump(mode="json")):
        config = config.model_copy(update={"lineage": previous.lineage + 1, "start": None})
    return config


@transaction.atomic
def run_config_publish(actor: User, run: Run, draft: Mapping[str, Any]) -> RunConfigVersion:
    """Sign ``draft`` as the run's next version.

    A change of task, optimizer or artifacts starts a new lineage: peers of both cannot average.

    Raises:
        AppError: FORBIDDEN, BODY_INVALID or RUN_OVER.
    """
    organiser_require(actor, run)
    row = Run.objects.select_for_update().get(pk=run.pk)
    if row.state in (RunState.FINISHED, RunState.ARCHIVED):
        raise AppError(ErrorCode.RUN_OVER)
    previous = row.configs.order_by("-version").first()
    config = config_check(row, draft, previous=previous)
    version = _store(actor, row, config)
    text = f"{public_name(actor)} published config version {version.version}"
    run_changed.send(Run, run=run, kind="config.published", text=text)
    _audit(actor, version, previous)
    return version


@transaction.atomic
def run_rewind(
    actor: User, run: Run, checkpoint: Checkpoint, *, reason: str = ""
) -> RunConfigVersion:
    """Begin a new lineage from a saved state: the coordinator restores it and every peer reloads.

    The config is otherwise as it was. Later states of the old lineages are no longer offered;
    their files stay where the coordinator keeps them.

    Raises:
        AppError: FORBIDDEN, RUN_OVER, CONFIG_MISSING, or BODY_INVALID (a state of another model).
    """
    organiser_require(actor, run)
    row = Run.objects.select_for_update().get(pk=run.pk)
    if row.state in OVER:
        raise AppError(ErrorCode.RUN_OVER)
    previous = config_current(row)
    saved_by = row.configs.filter(version=checkpoint.config_version).first()
    if saved_by is None or not is_compatible(saved_by.body, previous.body):
        raise AppError(ErrorCode.BODY_INVALID, "checkpoint: it holds the state of another model.")
    start = StartPoint(
        lineage=checkpoint.lineage,
        epoch=checkpoint.epoch,
        manifest_sha256=hashlib.sha256(checkpoint.manifest.encode()).hexdigest(),
    )
    changes = {
        "version": previous.version + 1,
        "lineage": previous.lineage + 1,
        "start": start,
        "previous_sha256": previous.sha256,
    }
    config = RunConfig.model_validate(previous.body).model_copy(update=changes)
    lineages = [lineage for lineage, _ in lineage_path(row)]
    row.checkpoints.filter(lineage__in=lineages, epoch__gt=start.epoch).delete()
    version = _store(actor, row, config)
    why = reason.strip()[:200]
    text = f"{public_name(actor)} rolled the run back to epoch {start.epoch}"
    run_changed.send(Run, run=run, kind="run.rolled_back", text=f"{text}: {why}" if why else text)
    _audit(actor, version, previous)
    data = {"epoch": start.epoch, "lineage": version.lineage} | ({"reason": why} if why else {})
    audit_record(actor, "run.rolled.back", row.slug, data)
    return version


def _store(actor: User, row: Run, config: RunConfig) -> RunConfigVersion:
    """Sign and keep a version."""
    jws, expires_at = _sign(config, timezone.now())
    return RunConfigVersion.objects.create(
        run=row,
        version=config.version,
        lineage=config.lineage,
        body=config.model_dump(mode="json"),
        jws=jws,
        sha256=hashlib.sha256(jws.encode()).hexdigest(),
        expires_at=expires_at,
        published_by=actor,
    )


def _audit(actor: User, version: RunConfigVersion, previous: RunConfigVersion | None) -> None:
    """Write down that a version was published: last, see ``web.core.audit``."""
    changes = config_diff(previous.body, version.body) if previous else []
    data = {
        "version": version.version,
        "lineage": version.lineage,
        "changed": [change["path"] for change in changes],
    }
    audit_record(actor, "run.config.published", version.run.slug, data)


@transaction.atomic
def configs_resign(now: datetime) -> int:
    """Sign the newest configs again when a third of their life is left; no new version.

    Returns how many.
    """
    newest = RunConfigVersion.objects.annotate(newest=Max("run__configs__version"))
    due = newest.filter(
        version=F("newest"), expires_at__lt=now + timedelta(days=settings.CONFIG_LIFETIME_DAYS) / 3
    ).exclude(run__state=RunState.ARCHIVED)
    versions = list(due.select_related("run"))
    for version in versions:
        version.jws, version.expires_at = _sign(RunConfig.model_validate(version.body), now)
        version.save(update_fields=("jws", "expires_at"))
        audit_record(None, "run.config.resigned", version.run.slug, {"version": version.version})
    return len(versions)


@transaction.atomic
def configs_resign_from(kid: str, now: datetime) -> int:
    """Sign all versions again that carry the signature of the key ``kid``; return how many."""
    versions = [
        version
        for version in RunConfigVersion.objects.select_related("run").order_by("pk")
        if peek_key_id(version.jws) == kid
    ]
    for version in versions:
        version.jws, version.expires_at = _sign(RunConfig.model_validate(version.body), now)
        version.save(update_fields=("jws", "expires_at"))
        data = {"version": version.version, "away_from": kid}
        audit_record(None, "run.config.resigned", version.run.slug, data)
    return len(versions)


def _sign(config: RunConfig, now: datetime) -> tuple[str, datetime]:
    lifetime = timedelta(days=settings.CONFIG_LIFETIME_DAYS)
    return site_sign(config, TYP_CONFIG, lifetime), now + lifetime


def _problems(error: ValidationError) -> str:
    items = error.errors(include_url=False)
    lines = [f"{'.'.join(map(str, i['loc'])) or 'config'}: {i['msg']}" for i in items]
    more = f"; and {len(lines) - _MAX_PROBLEMS} more" if len(lines) > _MAX_PROBLEMS else ""
    return "; ".join(lines[:_MAX_PROBLEMS]) + more


def _artifacts_require(config: RunConfig) -> None:
    sizes = dict(
        Artifact.objects.filter(sha256__in=[a.sha256 for a in config.artifacts]).values_list(
            "sha256", "size"
        )
    )
    for index, artifact in enumerate(config.artifacts):
        if artifact.sha256 not in sizes:
            raise AppError(
                ErrorCode.BODY_INVALID,
                f"artifacts.{index}.sha256: this file is not stored on the site",
            )
        if sizes[artifact.sha256] != artifact.size:
            raise AppError(
                ErrorCode.BODY_INVALID,
                f"artifacts.{index}.size: the stored file has {sizes[artifact.sha256]} bytes",
            )
