"""The client with which commands ask the REST interface of the running stack."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from deploy.settings import Settings
from master_dataset.errors import OperatorError, RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from galatea.client import Client
    from galatea.client.errors import ClientError

KeyFile = Annotated[
    Path | None,
    Option(
        "--key-file",
        help="File with the API key that only its owner can read. Default: the operator's key in the home.",
    ),
]

_OTHER_KEY = "galatea up --detach, or pass one with --key-file"


@contextmanager
def rest_client(settings: Settings, key_file: Path | None) -> "Iterator[Client]":
    """Yield a client; what it raises says what to do next.

    Args:
        settings: say where the interface is.
        key_file: None for the operator's key in the home.

    Raises:
        RequestError: the request cannot be answered, or the key is not valid.
        OperatorError: there is no key, or others can read that of `key_file`, or there is no answer.
    """
    from galatea.client import Client
    from galatea.client.errors import ClientError

    own = settings.home / "operator.key"
    key = _given_key(key_file) if key_file else _own_key(own)
    try:
        with Client(settings.api_url, key, ca_file=settings.api.ca_file or None) as galatea:
            yield galatea
    except ClientError as error:
        raise _as_error(error) from error
    except ValueError as error:
        raise RequestError(str(error), do=f"check {key_file or own}") from error


def _given_key(file: Path) -> str:
    """Return the key in a file that somebody else keeps: only its owner may read it. OperatorError."""
    from deploy.secret_files import read_private

    if not file.is_file():
        raise OperatorError(f"there is no key in {file}", do=_OTHER_KEY)
    return read_private("--key-file", file).strip()


def _own_key(file: Path) -> str:
    """Return the operator's key in the home, and make it private again. OperatorError."""
    from deploy.secret_files import stored_secret

    try:
        return stored_secret(file)
    except FileNotFoundError as error:
        raise OperatorError(f"there is no key in {file}", do=_OTHER_KEY) from error
    except OSError as error:
        message = f"the operator's key in {file} cannot be read: {error.strerror}"
        raise OperatorError(message, do="run this as the owner of the home, or pass a key with --key-file") from error


def _as_error(error: "ClientError") -> RequestError | OperatorError:
    from galatea.client.errors import AccessDeniedError, RateLimitedError, ResponseError, UnavailableError

    if not isinstance(error, ResponseError):
        return OperatorError(str(error), do="galatea status")
    is_operator = isinstance(error, AccessDeniedError | RateLimitedError | UnavailableError)
    found = (OperatorError if is_operator else RequestError)(error.title, do=error.detail)
    found.code = error.code
    return found
