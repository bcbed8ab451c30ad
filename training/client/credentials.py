"""Bearer tokens: from a login on disk, or handed in for headless use."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from training.client.errors import ClientError, ExitCode
from training.client.files import file_broken, json_read, json_write
from training.client.http import PlatformClient
from training.client.store import site_locked
from training.protocol.errors import ErrorCode
from training.protocol.names import ENV_TOKEN, OAUTH_CLIENT_ID, REVOKE_PATH, TOKEN_PATH


@dataclass(frozen=True)
class GivenToken:
    """A token from the environment or a file; it is never written down and cannot be renewed."""

    token: str

    def access_token(self) -> str | None:
        return self.token

    def renew(self, client: PlatformClient, refused: str) -> bool:
        return False


@dataclass(frozen=True)
class StoredLogin:
    """The login that ``beeyard join`` made, in the site's folder."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / "token.json"

    def access_token(self) -> str | None:
        return self._read().get("access_token")

    def renew(self, client: PlatformClient, refused: str) -> bool:
        """Exchange the refresh token; another process may have done so meanwhile.

        Refresh tokens rotate: the new one is on disk before the new access token is used.
        """
        with site_locked(self.folder):
            login = self._read()
            if login.get("access_token") != refused:
                return bool(login)
            if not login.get("refresh_token"):
                return False
            form = {
                "grant_type": "refresh_token",
                "refresh_token": login["refresh_token"],
                "client_id": OAUTH_CLIENT_ID,
            }
            status, answer = client.form_post(TOKEN_PATH, form)
            if status != 200 or not answer.get("access_token"):
                raise ClientError(
                    ErrorCode.TOKEN_EXPIRED,
                    "The login of this machine has ended",
                    "Run `beeyard logout`, then `beeyard join` again and confirm the new code.",
                    exit_code=ExitCode.NOT_ALLOWED,
                )
            self.keep({"refresh_token": login["refresh_token"]} | answer, client.clock.now())
            return True

    def keep(self, answer: dict[str, Any], now: datetime) -> None:
        """Write down a token endpoint's answer."""
        login = {k: str(answer[k]) for k in ("access_token", "refresh_token") if answer.get(k)}
        if isinstance(answer.get("expires_in"), int | float):
            expires = now.astimezone(UTC) + timedelta(seconds=answer["expires_in"])
            login["expires_at"] = expires.isoformat(timespec="seconds")
        json_write(self.path, login)

    def forget(self, client: PlatformClient) -> bool:
        """Revoke the login at the site and delete it here; False when there was none."""
        login = self._read()
        if not login:
            return False
        try:
            token = login.get("refresh_token") or login.get("access_token") or ""
            client.form_post(REVOKE_PATH, {"token": token, "client_id": OAUTH_CLIENT_ID})
        finally:
            self.path.unlink(missing_ok=True)
        return True

    def _read(self) -> dict[str, str]:
        login = json_read(self.path) or {}
        if login and not isinstance(login.get("access_token"), str):
            raise file_broken(self.path, "no access token in it")
        return login


def given_token_read(token_file: str | None) -> GivenToken | None:
    """Return the token of ``--token-file`` or $BEEYARD_TOKEN, if there is one.

    Raises:
        ClientError: the file cannot be read or is empty.
    """
    if token_file is None:
        text = os.environ.get(ENV_TOKEN, "").strip()
        return GivenToken(text) if text else None
    try:
        text = Path(token_file).expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _token_file_error(f"the token file {token_file} cannot be read ({error})") from error
    if not text or not text.isascii() or any(c.isspace() for c in text):
        raise _token_file_error(f"the token file {token_file} holds no token")
    return GivenToken(text)


def _token_file_error(detail: str) -> ClientError:
    return ClientError(
        "token_file_unusable",
        detail,
        "Put the token alone into the file; tokens are made on the page My devices.",
        exit_code=ExitCode.USAGE,
    )
