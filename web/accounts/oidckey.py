"""The RSA key that signs identity tokens of terminal logins; made on first use."""

from functools import lru_cache
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from web.core.secretfiles import secret_file_keep


@lru_cache(maxsize=1)
def oidc_key_pem(path: Path) -> str:
    """Return the private key as PEM."""
    secret_file_keep(path, _pem_make)
    return path.read_text()


def _pem_make() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
