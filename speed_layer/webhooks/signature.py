"""Who sent it, and when: an HMAC over the time and the body, as the header `Galatea-Signature`."""

import hashlib
import hmac

HEADER = "Galatea-Signature"
TOLERANCE_SECONDS = 300
"""A call that is older than this may be an old one that somebody sends again."""


def signed(secret: str, at: int, body: bytes) -> str:
    """The header of a body that is sent at that second since 1970."""
    return f"t={at},v1={_digest(secret, at, body)}"


def is_signed(secret: str, header: str, body: bytes, now: int, tolerance: int = TOLERANCE_SECONDS) -> bool:
    """What a receiver asks: whether the header is of this body, of who knows the secret, and of now."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    at = parts.get("t", "")
    if not (at.isascii() and at.isdecimal() and abs(now - int(at)) <= tolerance):
        return False
    return hmac.compare_digest(_digest(secret, int(at), body).encode(), parts.get("v1", "").encode())


def _digest(secret: str, at: int, body: bytes) -> str:
    return hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
