"""Configs as files: plain JSON, or as they were signed."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from training.protocol.config import RunConfig
from training.protocol.envelope import EnvelopeError, peek_body, verify
from training.protocol.names import TYP_CONFIG
from web.core.keys import site_keys_public
from web.runs.draft_body import MAX_TEXT, DraftError, body_own, json_read, value_check

MAX_FILE = 4 * MAX_TEXT
"""Bytes: a signed config is larger than its body."""
_JWS = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_CLAIMS = frozenset({"iss", "iat", "exp", "jti"})


@dataclass(frozen=True)
class ConfigFile:
    """What a file holds. ``note`` says where it comes from, in a sentence."""

    body: dict[str, Any]
    note: str


def config_file_read(data: bytes, now: datetime) -> ConfigFile:
    """Return the draft in a file: a config, a draft, the API's answer, or a signed config.

    Values in it may still be wrong: they are mended in the form.

    Raises:
        DraftError: it is none of these; the text says why.
    """
    if len(data) > MAX_FILE:
        raise DraftError(f"The file is larger than {MAX_FILE // 1024} KiB.")
    try:
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise DraftError("The file is not text in UTF-8.") from error
    if not text:
        raise DraftError("The file is empty.")
    if _JWS.fullmatch(text):
        return _signed(text, now)
    value = json_read(text)
    if isinstance(value, dict) and isinstance(value.get("config"), dict):
        value = value["config"]  # what the API answers
    if not isinstance(value, dict):
        raise DraftError("The file holds no config: a JSON object with the field task.")
    if "task" not in value:
        raise DraftError("The file holds no config: the field task is missing.")
    return ConfigFile(body_own(value), "The file is not signed.")


def _signed(token: str, now: datetime) -> ConfigFile:
    try:
        body = peek_body(token)
        value_check(body)
    except (EnvelopeError, ValueError, RecursionError) as error:
        raise DraftError("The file looks signed, and its content cannot be read.") from error
    if "task" not in body:
        raise DraftError("The file is signed, and it is no config.")
    note = "It was signed by this site."
    try:
        verify(token, typ=TYP_CONFIG, model=RunConfig, keys=site_keys_public(), now=now)
    except EnvelopeError as error:
        note = (
            "It was signed by this site, long ago."
            if error.code == "envelope_expired"
            else "Its signature is not one of this site: look at every value."
        )
    own = {name: value for name, value in body_own(body).items() if name not in _CLAIMS}
    return ConfigFile(own, note)
