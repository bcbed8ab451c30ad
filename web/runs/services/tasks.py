"""Tasks of installed packages that an admin lets runs of this site name."""

import re
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.audit import audit_record
from web.core.errors import AppError
from web.runs.catalogue import tasks_built_in
from web.runs.draft_body import DraftError, body_check, json_read
from web.runs.models import AllowedTask
from web.runs.schema_fields import MAX_FIELDS

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}")


@transaction.atomic
def task_allow(actor: User | None, entry: Mapping[str, Any]) -> AllowedTask:
    """Let configs name a task. ``entry`` is one of what ``beeyard tasks --json`` prints.

    Allowing it again replaces what the site knows of its parameters. None: the command line.

    Raises:
        AppError: FORBIDDEN (no admin) or BODY_INVALID.
    """
    _admin_require(actor)
    name, schema = entry.get("name"), entry.get("params_schema", {})
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise AppError(
            ErrorCode.BODY_INVALID, "name: 1 to 60 small letters, digits, dots, dashes are needed."
        )
    if name in tasks_built_in():
        raise AppError(ErrorCode.BODY_INVALID, f"name: {name} is built in, and always allowed.")
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or len(properties) > MAX_FIELDS:
        raise AppError(
            ErrorCode.BODY_INVALID, f"params_schema: a JSON schema of at most {MAX_FIELDS} fields."
        )
    try:
        body_check(dict(schema))
        summary = str(entry.get("summary", ""))
        body_check({"summary": summary})
    except DraftError as error:
        raise AppError(ErrorCode.BODY_INVALID, f"params_schema: {error}") from error
    earlier = AllowedTask.objects.select_for_update().filter(name=name).first()
    before = _told(earlier) if earlier else {}
    task, _ = AllowedTask.objects.update_or_create(
        name=name,
        defaults={
            "summary": summary[:200],
            "params_schema": schema,
            "allowed_by": actor,
            "allowed_at": timezone.now(),
        },
    )
    audit_record(actor, "task.allowed", name, {"before": before, "after": _told(task)})
    return task


@transaction.atomic
def task_disallow(actor: User | None, name: str) -> None:
    """Let no new config name the task; published ones stay as they are.

    Raises:
        AppError: FORBIDDEN or NOT_FOUND.
    """
    _admin_require(actor)
    task = AllowedTask.objects.select_for_update().filter(name=name).first()
    if task is None:
        raise AppError(ErrorCode.NOT_FOUND, "There is no such task.")
    task.delete()
    audit_record(actor, "task.disallowed", name, {"before": _told(task)})


def _told(task: AllowedTask) -> dict[str, Any]:
    """Return what the audit log says of a task."""
    fields = sorted(map(str, task.params_schema.get("properties", {})))[:40]
    return {"summary": task.summary, "fields": fields}


def task_entries(text: str) -> list[dict[str, Any]]:
    """Return the tasks in what ``beeyard tasks --json`` printed.

    Raises:
        AppError: BODY_INVALID.
    """
    try:
        value = json_read(text)
    except DraftError as error:
        raise AppError(ErrorCode.BODY_INVALID, str(error)) from error
    entries = value if isinstance(value, list) else [value]
    if not entries or not all(isinstance(entry, dict) for entry in entries):
        raise AppError(ErrorCode.BODY_INVALID, "It is not what `beeyard tasks --json` prints.")
    return entries


def _admin_require(actor: User | None) -> None:
    if actor is not None and not (actor.is_superuser and not actor.is_banned):
        raise AppError(ErrorCode.FORBIDDEN, "Only an admin of the site may allow tasks.")
