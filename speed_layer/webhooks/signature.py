"""Signatures of webhook calls, by Standard Webhooks 1.0.0, and by our own former header for one more release.

The secret is `whsec_` and the base64 of the key, so that every Standard Webhooks library verifies our calls. Secrets
made before that are URL-safe base64; they give the same key after `-` and `_` are replaced by `+` and `/`.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping

ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER = "webhook-id", "webhook-timestamp", "webhook-signature"
FORMER_ID_HEADER, FORMER_SIGNATURE_HEADER = "Idempotency-Key", "Galatea-Signature"
_PREFIX = "whsec_"


def signed_headers(secret: str, message_id: str, at: int, body: bytes) -> Mapping[str, str]:
    """The headers that identify and sign one call.

    Args:
        secret: Of the endpoint, as it was shown.
        message_id: The same whenever the same body is sent again; without a dot.
        at: When this attempt is sent, in seconds since 1970.
        body: The bytes that are sent.

    Returns:
        The headers of Standard Webhooks, then the former ones.
    """
    former = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return {
        ID_HEADER: message_id,
        TIMESTAMP_HEADER: str(at),
        SIGNATURE_HEADER: f"v1,{signature(key_of(secret), message_id, at, body)}",
        FORMER_ID_HEADER: message_id,
        FORMER_SIGNATURE_HEADER: f"t={at},v1={former}",
    }


def signature(key: bytes, message_id: str, at: int, body: bytes) -> str:
    """The base64 HMAC-SHA256 of id, time and body, joined by dots."""
    digest = hmac.digest(key, f"{message_id}.{at}.".encode() + body, hashlib.sha256)
    return base64.b64encode(digest).decode()


def key_of(secret: str) -> bytes:
    """The key that a secret encodes, in either alphabet of base64, with or without padding."""
    encoded = secret.removeprefix(_PREFIX).rstrip("=")
    return base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_" if {*encoded} & {*"-_"} else None)
