"""What stands before a body: whether it says beyond doubt whom it is for, where it ends, and what it expects."""

import re
from collections.abc import Sequence

from master_dataset.errors import GalateaError
from serving_layer.errors import ExpectationUnknown, HeadersTooLarge, RequestUnreadable

Fields = Sequence[tuple[bytes, bytes]]
HOST, CODING, EXPECT = b"host", b"transfer-encoding", b"expect"
LOOKED_AT = frozenset({HOST, CODING, EXPECT})
A_HOST = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=%\[\]:-]+")
SEPARATORS = 4
"""Bytes of a field beside its name and value."""
OLD, NEW = "1.0", "1.1"


def refuse_large(target: bytes, fields: Fields, most_bytes: int, most_fields: int) -> None:
    """HeadersTooLarge."""
    size = len(target) + sum(len(name) + len(value) + SEPARATORS for name, value in fields)
    if size > most_bytes or len(fields) > most_fields:
        raise too_large(most_bytes, most_fields)


def too_large(most_bytes: int, most_fields: int) -> GalateaError:
    """What is said of a head that is larger."""
    message = f"The target and the header fields are more than {most_bytes:,} bytes, or than {most_fields} fields."
    return HeadersTooLarge(message, do="Send fewer or shorter ones, or ask in several requests.")


def refuse_doubtful(version: str, fields: Fields) -> None:
    """RequestUnreadable, ExpectationUnknown. Two lengths, or one that is no number, the parser finds by itself."""
    if version not in (OLD, NEW):
        raise unreadable("The request is not HTTP/1.1.")
    said = [field for field in fields if field[0] in LOOKED_AT]
    hosts = [value for name, value in said if name == HOST]
    if len(hosts) > 1 or (version == NEW and not hosts):
        raise unreadable("A request needs one header field `Host`.")
    if hosts and not A_HOST.fullmatch(hosts[0]):
        raise unreadable("`Host` cannot be the name of a host.")
    codings = [value.strip().lower() for name, value in said if name == CODING]
    if codings and (version == OLD or codings != [b"chunked"]):
        raise unreadable("`Transfer-Encoding` has to be `chunked`, in HTTP/1.1.")
    if any(name == EXPECT and value.strip().lower() != b"100-continue" for name, value in said):
        raise ExpectationUnknown("Nothing but `100-continue` can be expected.", do="Leave `Expect` out.")


def unreadable(message: str = "What came is no HTTP/1.1.") -> GalateaError:
    """What is said of a request whose framing is lost."""
    return RequestUnreadable(message, do="Send requests as RFC 9112 has them, each with one length and one `Host`.")
