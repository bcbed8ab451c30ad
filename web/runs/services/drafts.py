"""Drafts of configs: begun, saved under an optimistic lock, imported, published."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.audit import audit_record
from web.core.errors import AppError
from web.runs.config_diff import config_diff
from web.runs.draft_body import DraftError, artifacts_of, body_check, body_own
from web.runs.findings import Finding
from web.runs.lifecycle import OVER
from web.runs.lint import blockers, unaccepted
from web.runs.models import ConfigDraft, Run, RunConfigVersion
from web.runs.selectors import config_newest
from web.runs.services.configs import run_config_publish
from web.runs.services.files import artifact_store
from web.runs.services.runs import organiser_require, run_create


class DraftConflict(Exception):
    """The draft, or the config in force, is another one than was read; ``theirs`` is what it is.

    ``theirs`` without a key is a version that was published meanwhile.
    """

    def __init__(self, theirs: ConfigDraft) -> None:
        super().__init__(f"the draft is at revision {theirs.revision}")
        self.theirs = theirs


@transaction.atomic
def draft_save(
    actor: User, run: Run, body: Mapping[str, Any], *, revision: int, based_on: int | None = None
) -> ConfigDraft:
    """Keep ``body`` as the run's draft; ``revision`` is the one that the editor saw.

    ``based_on`` is the version in force that the editor knows of: None does not compare.
    Values that do not fit are kept too: only publishing refuses them.

    Raises:
        AppError: FORBIDDEN, RUN_OVER, or BODY_INVALID (it cannot be kept at all).
        DraftConflict: the draft has moved on, or a version was published.
    """
    row = _lock(actor, run)
    draft = ConfigDraft.objects.select_related("edited_by").filter(run=row).first()
    if draft is not None and draft.revision != revision:
        raise DraftConflict(draft)
    if based_on is not None:
        _newest_require(row, draft, based_on)
    if draft is None:
        draft = _create(actor, row, {})  # discarded meanwhile: what was typed is a new one
    elif based_on is not None:
        draft.based_on = based_on
    return _write(actor, row, draft, body_own(body), "run.draft.saved")


@transaction.atomic
def draft_import(
    actor: User,
    run: Run,
    body: Mapping[str, Any],
    *,
    revision: int | None = None,
    based_on: int | None = None,
) -> ConfigDraft:
    """Replace the run's draft by what a file holds; ``revision`` as in ``draft_discard``.

    ``based_on`` is the version in force that the actor knows of; None: the draft's own.

    Raises:
        AppError: FORBIDDEN, RUN_OVER or BODY_INVALID.
        DraftConflict: the draft has moved on, or a version was published since it was begun.
    """
    row = _lock(actor, run)
    draft = ConfigDraft.objects.filter(run=row).first()
    _revision_require(draft, revision)
    known = draft.based_on if draft and based_on is None else based_on
    if known is not None:
        _newest_require(row, draft, known)
    before = draft.body if draft else None
    draft = draft or _create(actor, row, {})
    draft.based_on = draft.based_on if known is None else known
    draft = _write(actor, row, draft, body_own(body), "run.draft.imported")
    if before is not None:
        audit_record(actor, "run.draft.replaced", row.slug, {"body": before})
    return draft


@transaction.atomic
def draft_file_add(actor: User, run: Run, source: bytes, name: str) -> ConfigDraft:
    """Store a file on the site and name it in the draft, in place of one of the same name.

    Raises:
        AppError: FORBIDDEN, RUN_OVER or BODY_INVALID.
    """
    row = _lock(actor, run)
    stored = artifact_store(source, name)
    draft = ConfigDraft.objects.filter(run=row).first()
    if draft is None:
        newest = config_newest(row)
        draft = _create(actor, row, body_own(newest.body) if newest else {})
    kept = [a for a in artifacts_of(draft.body) if a.get("name") != name]
    entry = {"name": name, "sha256": stored.sha256, "size": stored.size}
    body = {**draft.body, "artifacts": [*kept, entry]}
    return _write(actor, row, draft, body, "run.draft.saved")


@transaction.atomic
def draft_discard(actor: User, run: Run, *, revision: int | None = None) -> None:
    """Throw the draft away; the audit log keeps what it was.

    ``revision`` is the one that the actor saw, 0: no draft; None does not compare.

    Raises:
        AppError: FORBIDDEN.
        DraftConflict: the draft has moved on.
    """
    organiser_require(actor, run)
    row = Run.objects.select_for_update().get(pk=run.pk)
    draft = ConfigDraft.objects.select_for_update().filter(run=row).first()
    _revision_require(draft, revision)
    if draft is not None:
        draft.delete()
        audit_record(actor, "run.draft.discarded", run.slug, {"body": draft.body})


@transaction.atomic
def draft_publish(
    actor: User,
    run: Run,
    *,
    revision: int,
    findings: Sequence[Finding],
    accepted: Sequence[str] = (),
    based_on: int | None = None,
) -> RunConfigVersion:
    """Sign the draft as the run's next version, and end the draft.

    ``findings`` are those of this draft now, ``accepted`` the codes of warnings that were ticked.
    ``based_on`` is the version that the actor knowingly replaces; None: the draft's own.

    Raises:
        AppError: FORBIDDEN, RUN_OVER, or BODY_INVALID (it does not fit, or a finding forbids it).
        DraftConflict: the draft has moved on since it was checked, or a version was published
            since it was begun.
    """
    row = _lock(actor, run)
    draft = ConfigDraft.objects.select_related("edited_by").filter(run=row).first()
    if draft is None:
        raise AppError(ErrorCode.BODY_INVALID, "There is no draft any more.")
    if draft.revision != revision:
        raise DraftConflict(draft)
    _newest_require(row, draft, draft.based_on if based_on is None else based_on)
    against = [*blockers(findings), *unaccepted(findings, accepted)]
    if against:
        raise AppError(ErrorCode.BODY_INVALID, f"Not published. {against[0].sentence}")
    draft.delete()
    version = run_config_publish(actor, row, draft.body)
    codes = sorted({f.code for f in findings if f.code in accepted})
    if codes:
        audit_record(
            actor, "run.warnings.accepted", row.slug, {"version": version.version, "codes": codes}
        )
    return version


@transaction.atomic
def run_make(
    actor: User,
    *,
    slug: str,
    title: str,
    summary: str,
    description: str = "",
    is_public: bool = True,
    join_policy: str = Run.JoinPolicy.OPEN,
    body: Mapping[str, Any],
) -> Run:
    """Make a run with a draft to begin with, from a preset, a file or another run's config.

    Raises:
        AppError: FORBIDDEN or BODY_INVALID.
    """
    run = run_create(
        actor,
        slug=slug,
        title=title,
        summary=summary,
        description=description,
        is_public=is_public,
        join_policy=join_policy,
    )
    draft = _create(actor, run, {})
    own = {name: value for name, value in body_own(body).items() if name != "title"}
    _write(actor, run, draft, own, "run.draft.saved")
    return run


def run_clone(actor: User, run: Run, *, slug: str, title: str) -> Run:
    """Make a run like ``run``: its texts, and its draft or newest config as a draft.

    Nothing of its history goes along. Whoever may make runs may clone one that they see.

    Raises:
        AppError: FORBIDDEN or BODY_INVALID.
    """
    draft, newest = ConfigDraft.objects.filter(run=run).first(), config_newest(run)
    body = draft.body if draft else newest.body if newest else {}
    return run_make(
        actor,
        slug=slug,
        title=title,
        summary=run.summary,
        description=run.description,
        is_public=run.is_public,
        join_policy=run.join_policy,
        body=body,
    )


def _lock(actor: User, run: Run) -> Run:
    organiser_require(actor, run)
    row = Run.objects.select_for_update().get(pk=run.pk)
    if row.state in OVER:
        raise AppError(ErrorCode.RUN_OVER)
    return row


def _revision_require(draft: ConfigDraft | None, revision: int | None) -> None:
    if draft is not None and revision is not None and draft.revision != revision:
        raise DraftConflict(draft)


def _newest_require(run: Run, draft: ConfigDraft | None, based_on: int) -> None:
    """Raise DraftConflict, with the newest version as theirs, when the editor knows an older."""
    newest = config_newest(run)
    if newest is None or newest.version == based_on:
        return
    theirs = ConfigDraft(
        run=run,
        body=body_own(newest.body),
        revision=draft.revision if draft else 0,
        based_on=newest.version,
        edited_by=newest.published_by,
        edited_at=newest.published_at,
    )
    raise DraftConflict(theirs)


def _create(actor: User, run: Run, body: dict[str, Any]) -> ConfigDraft:
    newest = config_newest(run)
    return ConfigDraft.objects.create(
        run=run,
        body=body,
        based_on=newest.version if newest else 0,
        edited_by=actor,
        edited_at=timezone.now(),
    )


def _write(
    actor: User, run: Run, draft: ConfigDraft, body: dict[str, Any], code: str
) -> ConfigDraft:
    try:
        body_check(body)
    except DraftError as error:
        raise AppError(ErrorCode.BODY_INVALID, str(error)) from error
    paths = [change["path"] for change in config_diff(draft.body, body)]
    draft.body, draft.edited_by, draft.edited_at = body, actor, timezone.now()
    draft.revision += 1
    draft.save()
    audit_record(actor, code, run.slug, {"revision": draft.revision, "changed": paths[:40]})
    return draft
