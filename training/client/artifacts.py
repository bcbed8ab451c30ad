"""Files that belong to a config, fetched by their content hash."""

import hashlib
from pathlib import Path

from training.client.errors import ExitCode, PlatformError, store_error
from training.client.files import folder_make
from training.client.http import PlatformClient
from training.protocol.config import Artifact
from training.protocol.names import API_PREFIX


def artifact_fetch(client: PlatformClient, folder: Path, artifact: Artifact) -> Path:
    """Return the file's path in ``folder`` (named by its hash), downloaded when needed.

    A broken download goes on where it stopped. Nothing is visible under the final name before
    its size and hash were checked.

    Raises:
        PlatformError: not reachable, or the bytes are not the ones the config names.
    """
    path = folder / artifact.sha256
    if _is_intact(path, artifact):
        return path
    folder_make(folder)
    part = folder / f"{artifact.sha256}.part"
    try:
        client.retry.run(lambda: _download(client, part, artifact))
        if not _is_intact(part, artifact):
            part.unlink(missing_ok=True)
            raise _mismatch(client, artifact)
        part.chmod(0o600)
        part.replace(path)
    except OSError as error:
        raise store_error(
            f"{artifact.name} cannot be saved: {error.strerror}",
            "Free some disk space or check who owns the beeyard folder.",
        ) from error
    return path


def _download(client: PlatformClient, part: Path, artifact: Artifact) -> None:
    have = part.stat().st_size if part.exists() else 0
    if have >= artifact.size:
        have = 0
    with client.download(f"{API_PREFIX}/artifacts/{artifact.sha256}/", start=have) as response:
        if response.status_code != 206:
            have = 0
        with part.open("r+b" if have else "wb") as file:
            file.seek(have)
            for chunk in response.iter_raw():
                have += len(chunk)
                if have > artifact.size:
                    break
                file.write(chunk)
    if have > artifact.size:
        part.unlink()
        raise _mismatch(client, artifact)


def _is_intact(path: Path, artifact: Artifact) -> bool:
    try:
        if path.stat().st_size != artifact.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == artifact.sha256
    except FileNotFoundError:
        return False


def _mismatch(client: PlatformClient, artifact: Artifact) -> PlatformError:
    error = PlatformError(
        "artifact_mismatch",
        f"{artifact.name} from {client.address.origin} is not the file that the config names",
        "Try again; if it stays, tell the organisers: the file on the site is damaged.",
        status=200,
    )
    error.exit_code = ExitCode.BAD_SIGNATURE
    return error
