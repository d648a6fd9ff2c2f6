"""The key of a deployment: it encrypts webhook secrets, and signs rows of API keys and records of alerts.

Each of these has a key of its own, derived from the one in the key file, so that none can stand for another.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import Literal, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from master_dataset.errors import OperatorError

Purpose = Literal["webhook secrets", "api keys", "alerts", "fingerprint"]
_BYTES, _NONCE_BYTES, _FINGERPRINT_BYTES = 32, 12, 8
_LEAST_CHARACTERS = 32
_FORM = "1:"
"""What sealed text begins with: AES-256-GCM, the nonce first, in base64."""


class SealedTextError(ValueError):
    """Sealed text cannot be opened: it is damaged, or was sealed with another key or for another row."""


class SecretsKey:
    """The key, derived once for every purpose. It has no representation that shows it."""

    def __init__(self, secret: str) -> None:
        """`secret`: the content of the key file."""
        self._secret = secret.encode()
        self._derived: dict[Purpose, bytes] = {}

    @classmethod
    def of_file(cls, text: str, place: str) -> Self:
        """Return the key that a file holds. OperatorError if it is too short to be one."""
        secret = text.strip()
        if len(secret) < _LEAST_CHARACTERS:
            message = f"`{place}` has {len(secret)} characters, and a key needs at least {_LEAST_CHARACTERS}"
            raise OperatorError(message, do="write a random text into it: openssl rand -base64 32")
        return cls(secret)

    @staticmethod
    def new_text() -> str:
        """Return the content of a new key file: 256 random bits."""
        return secrets.token_urlsafe(_BYTES)

    @property
    def fingerprint(self) -> str:
        """What tells this key from others, and nothing else about it."""
        return self._of("fingerprint")[:_FINGERPRINT_BYTES].hex()

    def seal(self, text: str, *context: str) -> str:
        """Encrypt a secret. It can be opened for the same `context` only, such as the id of its row."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = AESGCM(self._of("webhook secrets")).encrypt(nonce, text.encode(), _joined(_encoded(context)))
        return _FORM + base64.b64encode(nonce + sealed).decode()

    def open(self, sealed: str, *context: str) -> str:
        """Return what `seal` was given. SealedTextError if it is something else."""
        try:
            # What does not begin with the form has a colon, or is too short: neither can be opened.
            found = base64.b64decode(sealed.removeprefix(_FORM), validate=True)
            nonce, text = found[:_NONCE_BYTES], found[_NONCE_BYTES:]
            return AESGCM(self._of("webhook secrets")).decrypt(nonce, text, _joined(_encoded(context))).decode()
        except (InvalidTag, binascii.Error, ValueError) as error:
            raise SealedTextError("not sealed with this key for this row") from error

    def sign(self, purpose: Purpose, *parts: bytes) -> bytes:
        """Return the HMAC-SHA256 over the parts, each with its length."""
        return hmac.digest(self._of(purpose), _joined(parts), hashlib.sha256)

    def has_signed(self, mac: bytes | None, purpose: Purpose, *parts: bytes) -> bool:
        """Whether `mac` is what `sign` returns, compared in constant time. None is not."""
        return mac is not None and hmac.compare_digest(mac, self.sign(purpose, *parts))

    def _of(self, purpose: Purpose) -> bytes:
        if purpose not in self._derived:
            derive = HKDF(algorithm=SHA256(), length=_BYTES, salt=None, info=f"galatea {purpose}".encode())
            self._derived[purpose] = derive.derive(self._secret)
        return self._derived[purpose]


def _encoded(texts: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(text.encode() for text in texts)


def _joined(parts: tuple[bytes, ...]) -> bytes:
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)
