"""The addresses that mails are sent to and come from."""

from email.errors import MessageError
from email.headerregistry import Address

MOST_CHARACTERS = 254


def mail_address(text: str) -> str:
    """Return a plain mail address, such as `anna@shop.example`.

    Raises:
        ValueError: It is none, or has a name, a comment or characters beside ASCII.
    """
    try:
        found = Address(addr_spec=text)
        is_plain = found.addr_spec == text and text.isascii() and text.isprintable() and " " not in text
    except (MessageError, ValueError, IndexError):
        is_plain = False
    if not (is_plain and found.username and found.domain and len(text) <= MOST_CHARACTERS):
        raise ValueError("not a mail address, such as anna@shop.example")
    return text
