"""Ed25519 keys of an installation: what it exports is signed, what it imports is checked."""

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.errors import Refusal

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class Keys:
    """A folder with the own key, and with the public keys of those who are believed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own, self._trusted = folder / "bundles.pem", folder / "trusted.txt"

    def sign(self, data: bytes) -> tuple[str, str]:
        """The public key and the signature, both base64; the key is made with the first one."""
        key = self._private()
        return _text(key.public_key().public_bytes_raw()), _text(key.sign(data))

    def trusted(self) -> set[str]:
        """Public keys that are believed: the own one, and those that a person named."""
        named = self._trusted.read_text().split("\n") if self._trusted.exists() else []
        known = {line.split()[0] for line in named if line.strip()}
        if self._own.exists():
            known.add(_text(self._private().public_key().public_bytes_raw()))
        return known

    def trust(self, key: str) -> None:
        """Believe a public key from now on.

        Raises:
            Refusal: `no-key`: it is none.
        """
        if len(_bytes(key)) != 32:
            raise Refusal("no-key", "a public key is 32 bytes in base64")
        if key not in self.trusted():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._trusted.open("a") as file:
                file.write(f"{key}\n")

    def _private(self) -> "Ed25519PrivateKey":
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if not self._own.exists():
            made = Ed25519PrivateKey.generate().private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self._own.with_suffix(f".{os.getpid()}")
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(made)
            try:
                os.link(draft, self._own)  # of two that make it at once, the first one's counts
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        key = serialization.load_pem_private_key(self._own.read_bytes(), password=None)
        if not isinstance(key, Ed25519PrivateKey):
            raise Refusal("no-key", f"{self._own} is no Ed25519 key")
        return key


def is_signed(data: bytes, key: str, signature: str) -> bool:
    """Did the owner of this public key sign exactly these bytes?"""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(_bytes(key)).verify(_bytes(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""
