"""The end of a managed worker's log, wherever it runs; secrets are taken out before it leaves.

A node's files are its own. Another node's log is asked for by the desk and put into the shared
cache by that node, bounded and for a minute.
"""

import re
from collections import deque
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from web.workers.launcher import log_path, worker_folder
from web.workers.models import ManagedWorker

LOG_LINES = 200
LINE_CHARACTERS = 500
_LOG_BYTES = 200_000
_KEPT_SECONDS = 60
_HIDDEN = "[secret]"
_SECRETS = (
    re.compile(r"\bby_[A-Za-z0-9_-]{16,}"),
    re.compile(r"(?i)(?<=bearer )\S+"),
    re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+"),
)
"""Tokens, passwords in addresses, signed passes."""


@dataclass(frozen=True)
class LogView:
    """What can be shown of a log now."""

    lines: list[str]
    as_of: datetime | None
    """When the lines were read; None: the node has not answered yet."""


def log_clean(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return the text without what looks like, or is, a secret. Pure."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, _HIDDEN)
    for pattern in _SECRETS:
        text = pattern.sub(_HIDDEN, text)
    return text


def log_read(worker: ManagedWorker, lines: int = LOG_LINES) -> list[str]:
    """Return the last lines that a process of this node wrote."""
    try:
        with log_path(worker).open("rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - _LOG_BYTES))
            text = log.read().decode(errors="replace")
    except OSError:
        return []
    last = deque(text.splitlines(), maxlen=lines)
    own = _token(worker)
    # Folders of the machine are nobody's business either.
    short = (line.replace(str(settings.DATA_DIR), "…") for line in last)
    return [log_clean(line, (own,))[:LINE_CHARACTERS] for line in short]


def log_view(worker: ManagedWorker) -> LogView:
    """Return what is known of the log here and now."""
    if worker.node == settings.NODE:
        return LogView(log_read(worker), timezone.now())
    kept = cache.get(_key(worker))
    if not isinstance(kept, dict):
        return LogView([], None)
    return LogView(list(kept["lines"]), kept["as_of"])


def log_share(worker: ManagedWorker) -> None:
    """Put the end of a log of this node where the desk finds it."""
    value = {"lines": log_read(worker), "as_of": timezone.now()}
    cache.set(_key(worker), value, timeout=_KEPT_SECONDS)


def _key(worker: ManagedWorker) -> str:
    return f"worker-log:{worker.pk}"


def _token(worker: ManagedWorker) -> str:
    try:
        return (worker_folder(worker) / "token").read_text().strip()
    except OSError:
        return ""
