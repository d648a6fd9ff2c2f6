"""Where tables and checkpoints are: in local folders, or on an object store that speaks S3.

Everything that opens a table or a file goes through this module; `object_store` says which URIs are remote. Credentials
are looked up for each table that is opened, so that temporary ones are renewed, and are never written down.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from pyarrow.fs import FileSelector, FileSystem, LocalFileSystem, S3FileSystem

from master_dataset.errors import ObjectStoreAccessError, ObjectStoreUnavailableError, OperatorError
from master_dataset.object_store import ObjectStore, is_remote, object_store

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from botocore.session import Session
    from deltalake import DeltaTable

_SECONDS = 10
"""How long a connection or an answer may take."""
_ATTEMPTS = 4
_DO_DOCTOR = "galatea doctor"


class Credentials(NamedTuple):
    """What requests are signed with. `token` is empty for credentials that do not expire."""

    key: str
    secret: str
    token: str

    def __repr__(self) -> str:
        """Show no secret."""
        return "Credentials(...)"


# Tables


def open_table(uri: str, version: int | None = None) -> "DeltaTable":
    """Open a Delta table, in its newest version or that one.

    Raises:
        ObjectStoreAccessError: There are no credentials.
        ObjectStoreUnavailableError: The object store does not answer, or refuses.
        DeltaError: There is no such table.
    """
    from deltalake import DeltaTable  # noqa: PLC0415 - it takes 0.1 GB, and not every process opens tables

    with answering(uri):
        return DeltaTable(uri, version=version, storage_options=options(uri))


def is_table(uri: str) -> bool:
    """Whether there is a Delta table. Raises ObjectStoreUnavailableError."""
    from deltalake import DeltaTable  # noqa: PLC0415 - likewise

    with answering(uri):
        return DeltaTable.is_deltatable(uri, storage_options=options(uri))


@contextmanager
def answering(uri: str) -> Iterator[None]:
    """Replace what delta-rs or Arrow raise if an object store does not answer, or refuses, by one sentence.

    Raises:
        ObjectStoreUnavailableError: The URI is on an object store, and cannot be read.
    """
    try:
        yield
    except OSError as error:
        if not is_remote(uri):
            raise
        reason = " ".join(_COLOUR.sub("", str(error)).split())
        message = f"`{uri}` on {object_store().shown} cannot be read: {reason[:_REASON]}"
        raise ObjectStoreUnavailableError(message, do=_DO_DOCTOR) from error


_COLOUR = re.compile(r"\x1b\[[0-9;]*m|↳")
_REASON = 300
"""How much of an error is shown; delta-rs's have many lines."""


def options(uri: str) -> dict[str, str] | None:
    """Return delta-rs's options for a URI; None for a local folder.

    A commit is a PUT that succeeds only if the log has no entry of that number: several writers cannot lose one.

    Raises:
        ObjectStoreAccessError: There are no credentials.
    """
    if not is_remote(uri):
        return None
    found, endpoint = credentials(), _endpoint_of_bucket(uri)
    named = {
        "AWS_ACCESS_KEY_ID": found.key,
        "AWS_SECRET_ACCESS_KEY": found.secret,
        "AWS_SESSION_TOKEN": found.token,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ENDPOINT_URL_S3": endpoint,  # else the variable of that name would win
    }
    return {name: value for name, value in named.items() if value} | {
        "AWS_REGION": region(),
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false" if object_store().path_style else "true",
        "AWS_ALLOW_HTTP": "false" if object_store().is_encrypted else "true",
        "AWS_CONDITIONAL_PUT": "etag",
        "timeout": f"{3 * _SECONDS}s",
        "connect_timeout": f"{_SECONDS}s",
        "max_retries": f"{_ATTEMPTS}",
    }


def _endpoint_of_bucket(uri: str) -> str:
    """Return the endpoint for delta-rs, which takes one without path style as that of the bucket."""
    store = object_store()
    if store.path_style or not store.endpoint:
        return store.endpoint
    scheme, _, host = store.endpoint.partition("://")
    return f"{scheme}://{uri.partition('://')[2].partition('/')[0]}.{host}"


# Files


def filesystem(uri: str) -> tuple[FileSystem, str]:
    """Return Arrow's file system of a URI, and the path in it."""
    if not is_remote(uri):
        path = unquote(urlsplit(uri).path) if uri.startswith("file://") else uri
        return LocalFileSystem(), path
    return _s3(object_store(), region(), credentials()), uri.partition("://")[2]


@lru_cache(maxsize=4)
def _s3(store: ObjectStore, region_name: str, found: Credentials) -> S3FileSystem:
    return S3FileSystem(
        access_key=found.key,
        secret_key=found.secret,
        session_token=found.token or None,
        region=region_name,
        endpoint_override=store.endpoint or None,
        scheme="https" if store.is_encrypted else "http",
        force_virtual_addressing=not store.path_style and bool(store.endpoint),
        connect_timeout=_SECONDS,
        request_timeout=3 * _SECONDS,
    )


def exists(uri: str) -> bool:
    """Whether there is a file, or a folder with files. Raises ObjectStoreUnavailableError."""
    files, path = filesystem(uri)
    with answering(uri):
        return bool(files.get_file_info(path).type)


def read_bytes(uri: str) -> bytes:
    """Read a whole file. FileNotFoundError."""
    files, path = filesystem(uri)
    with files.open_input_stream(path) as file:
        found: bytes = file.read()
    return found


def write_bytes(uri: str, content: bytes) -> None:
    """Write a whole file, in a folder that may be missing. OSError."""
    files, path = filesystem(uri)
    if not is_remote(uri):
        files.create_dir(path.rpartition("/")[0], recursive=True)
    with files.open_output_stream(path) as file:
        file.write(content)


def names_in(uri: str) -> list[str]:
    """Return the names of files and folders in a folder; none if it does not exist."""
    files, path = filesystem(uri)
    return [each.base_name for each in files.get_file_info(FileSelector(path, allow_not_found=True))]


def delete_file(uri: str) -> None:
    """Delete a file. OSError."""
    files, path = filesystem(uri)
    files.delete_file(path)


def delete_folder(uri: str) -> None:
    """Delete a folder with all files in it. OSError."""
    files, path = filesystem(uri)
    files.delete_dir(path)


# Credentials


def credentials() -> Credentials:
    """Return current credentials of the usual chain.

    Raises:
        ObjectStoreAccessError: The chain has none, or a profile or variable is wrong.
        ObjectStoreUnavailableError: They cannot be fetched or renewed now.
    """
    session = _session()
    with _looking_up():
        found = session.get_credentials()
    if found is None:
        message = f"there are no credentials for {object_store().shown}"
        do = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the role of the machine or pod"
        raise ObjectStoreAccessError(message, do=do)
    with _looking_up():
        frozen = found.get_frozen_credentials()
    return Credentials(frozen.access_key, frozen.secret_key, frozen.token or "")


def region() -> str:
    """Return the region: the setting, else that of the environment or profile, else Amazon's first one.

    Raises:
        ObjectStoreAccessError: There is no such profile.
    """
    if object_store().region:
        return object_store().region
    session = _session()
    with _looking_up():
        return session.get_config_variable("region") or "us-east-1"


@contextmanager
def _looking_up() -> Iterator[None]:
    """Replace errors that botocore raises while it looks up credentials and profiles by sentences."""
    from botocore.exceptions import (  # noqa: PLC0415 - local folders need no S3 client
        BotoCoreError,
        PartialCredentialsError,
        ProfileNotFound,
    )

    try:
        yield
    except (PartialCredentialsError, ProfileNotFound) as error:
        message = f"the credentials for {object_store().shown} cannot be used: {error}"
        raise ObjectStoreAccessError(message, do="correct AWS_PROFILE or the AWS_* variables") from error
    except BotoCoreError as error:
        message = f"the credentials for {object_store().shown} cannot be fetched: {error}"
        raise ObjectStoreUnavailableError(message, do=_DO_DOCTOR) from error


@lru_cache(maxsize=1)
def _session() -> "Session":
    try:
        import botocore.session  # noqa: PLC0415 - local folders need no S3 client
    except ImportError as error:
        message = "a table is on an object store, and the package `botocore` is not installed"
        raise OperatorError(message, do="pip install galatea-platform[s3]") from error
    return botocore.session.get_session()


def _client() -> "BaseClient":
    from botocore.config import Config  # noqa: PLC0415 - likewise

    style = {"addressing_style": "path" if object_store().path_style else "virtual"}
    retries = {"mode": "standard", "total_max_attempts": _ATTEMPTS}
    return _session().create_client(
        "s3",
        region_name=region(),
        endpoint_url=object_store().endpoint or None,
        config=Config(connect_timeout=_SECONDS, read_timeout=_SECONDS, retries=retries, s3=style),
    )


# The probe


def probe(uri: str, setting: str) -> None:
    """Check that a folder on the object store can be written, and that its PUTs can be conditional.

    Two processes may commit to a table at once. Each does it by a PUT that has to fail if the log entry exists. A store
    that ignores the condition would let the later one overwrite the earlier one, so it is refused.

    Args:
        uri: Root of tables or checkpoints. Nothing is checked if it is a local folder.
        setting: The setting that names it, for errors.

    Raises:
        ObjectStoreAccessError: There are no credentials, no such bucket, or no rights; or the store has no conditional
            PUT. An operator has to act.
        ObjectStoreUnavailableError: The store does not answer, or asks to slow down.
    """
    if not is_remote(uri):
        return
    bucket, _, prefix = uri.partition("://")[2].partition("/")
    key = f"{prefix}/_probe/{uuid4().hex}".lstrip("/")
    credentials()
    with _reported(bucket, uri, setting):
        client: Any = _client()  # botocore makes its methods at run time
        # The first one only fails if it is itself repeated because its answer was lost.
        is_conditional = not (_is_created(client, bucket, key) and _is_created(client, bucket, key))
        client.delete_object(Bucket=bucket, Key=key)
    if not is_conditional:
        message = f"{object_store().shown} ignores `If-None-Match`, so two writers of `{uri}` could lose a commit"
        raise ObjectStoreAccessError(message, do=f"set {setting} to a folder, or to a store with conditional PUT")


def _is_created(client: Any, bucket: str, key: str) -> bool:  # noqa: ANN401 - likewise
    """Put an object that must not exist. Whether that succeeded."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - likewise

    try:
        client.put_object(Bucket=bucket, Key=key, Body=b"", IfNoneMatch="*")
    except ClientError as error:
        if _status(error.response) in _CONDITION_FAILED:
            return False
        raise
    return True


_CONDITION_FAILED = (409, 412)
_NOT_IMPLEMENTED = 501
_FORBIDDEN = (401, 403)
_SLOW_DOWN = {"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests"}


def _status(response: Mapping[str, Any]) -> int:
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


@contextmanager
def _reported(bucket: str, uri: str, setting: str) -> Iterator[None]:
    """Replace errors of the client by sentences."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - likewise

    try:
        yield
    except ClientError as error:
        raise _refusal(error.response, bucket, uri, setting) from error
    except BotoCoreError as error:  # no connection, timeout, a certificate that is not trusted
        message = f"{object_store().shown} does not answer: {error}"
        do = f"check GALATEA_S3_ENDPOINT, its certificate and the network; then: {_DO_DOCTOR}"
        raise ObjectStoreUnavailableError(message, do=do) from error


def _refusal(response: Mapping[str, Any], bucket: str, uri: str, setting: str) -> Exception:
    code, status = str(response.get("Error", {}).get("Code", "")), _status(response)
    if code == "NoSuchBucket":
        message = f"{object_store().shown} has no bucket `{bucket}`"
        return ObjectStoreAccessError(message, do=f"create the bucket, or correct {setting}")
    if status == _NOT_IMPLEMENTED:
        message = f"{object_store().shown} has no conditional PUT, so two writers of `{uri}` could lose a commit"
        return ObjectStoreAccessError(message, do=f"set {setting} to a folder, or to a store with conditional PUT")
    if status in _FORBIDDEN:
        message = f"{object_store().shown} refuses to write to `{uri}`: {code}"
        do = "check the credentials (AWS_*), and their rights to get, put, delete and list objects there"
        return ObjectStoreAccessError(message, do=do)
    if code in _SLOW_DOWN or status == _TOO_MANY:
        message = f"{object_store().shown} limits the rate of requests: {code}"
        return ObjectStoreUnavailableError(message, do="wait; if it stays so, raise the limits of the bucket")
    if status >= _SERVER_ERROR:
        message = f"{object_store().shown} answers {status}: {code}"
        return ObjectStoreUnavailableError(message, do=f"wait until it is well again; then: {_DO_DOCTOR}")
    message = f"{object_store().shown} refuses `{uri}`: {code or status}"
    return ObjectStoreAccessError(message, do=f"correct {setting}, GALATEA_S3_REGION or GALATEA_S3_PATH_STYLE")


_TOO_MANY = 429
_SERVER_ERROR = 500
