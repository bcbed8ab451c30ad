"""Secrets that have to be read again later, encrypted at rest with a key of this site.

The key stands in ``keys/webhooks.key``: a copy of the database alone tells no secret.
"""

from functools import lru_cache
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from web.core.secretfiles import secret_file_keep


class SealError(ValueError):
    """A secret was encrypted with another key than this site has now."""


def seal(text: str) -> str:
    """Return ``text`` encrypted and authenticated."""
    return _fernet().encrypt(text.encode()).decode()


def unseal(token: str) -> str:
    """Return what :func:`seal` was given.

    Raises:
        SealError: the key is another one, or the text was changed.
    """
    try:
        return _fernet().decrypt(token.encode()).decode()
    except InvalidToken as error:
        raise SealError("The key for webhook secrets is not the one it was sealed with.") from error


def _fernet() -> Fernet:
    path = Path(settings.KEYS_DIR) / "webhooks.key"
    secret_file_keep(path, lambda: Fernet.generate_key().decode())
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _read(path: Path, changed_ns: int) -> Fernet:
    return Fernet(path.read_text().strip())
