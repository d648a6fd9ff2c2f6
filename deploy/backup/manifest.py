"""The manifest of a backup, `backup.json`: what the folder holds, and where the rest is. It is written last."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import NoReturn

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from master_dataset.errors import BadFileError, OperatorError

FORMAT = 1
"""Raised when a release that does not know it must not restore the backup."""
MANIFEST = "backup.json"
_CHUNK = 1024 * 1024
_CHECKSUM = "checksum"
DAMAGED = "choose another backup; this one cannot be used as it is"


class SavedFile(msgspec.Struct, frozen=True):
    """A file of the backup. `path`: relative to its folder. `rows`: of the Parquet file. `sha256`: in hexadecimal."""

    path: str
    rows: int
    bytes: int
    sha256: str


class SavedMaster(msgspec.Struct, frozen=True):
    """A table of the master dataset by reference.

    `id`: Delta's id of the table, which no other table has. `files`: how many data files that version has, of how many
    `bytes` together; `listed` names them.
    """

    id: str
    version: int
    files: int
    bytes: int
    listed: SavedFile


class SavedTopic(msgspec.Struct, frozen=True):
    """A topic as it was. `id` changes if it is created again. `ends`: partition to the offset after its last record."""

    id: str
    ends: dict[int, int]


class Manifest(msgspec.Struct, frozen=True):
    """A backup.

    `secrets_key`: the fingerprint of the key that signs its keys and encrypts its webhook secrets; empty if a release
    has written it that did neither. The key itself is in no backup.

    `id`: unique. `product`: the release that wrote it. `schema`: the last file of tables that was applied. `cut`: of
    the publication; of publication 0 the start of 1970. `kafka`: the id of the cluster; empty, as `topics`, if offsets
    were left out. `tables`: by name. `master`: by
    the folder of the table below the root of the master dataset.
    """

    format: int
    id: str
    product: str
    schema: str
    created_at: datetime
    publication: int
    cut: datetime
    kafka: str
    topics: dict[str, SavedTopic]
    tables: dict[str, SavedFile]
    master: dict[str, SavedMaster]
    secrets_key: str = ""

    @property
    def files(self) -> Iterator[SavedFile]:
        """Every file but the manifest."""
        yield from self.tables.values()
        yield from (each.listed for each in self.master.values())

    @property
    def rows(self) -> int:
        """How many rows of Cassandra it holds."""
        return sum(each.rows for each in self.tables.values())


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest with its own checksum, readable by its owner alone, and flush it."""
    place, fields = folder / MANIFEST, msgspec.to_builtins(manifest, str_keys=True)
    text = msgspec.json.encode({**fields, _CHECKSUM: _checksum_of(fields)})
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.format(text, indent=2) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a backup.

    Raises:
        BadFileError: There is no backup in the folder, it is not complete, or its manifest was changed.
        OperatorError: A newer release has written it.
    """
    place = folder / MANIFEST
    if place.exists() and not place.is_file():  # reading a named pipe would wait for a writer
        raise BadFileError(f"`{place}` is not a regular file", do=DAMAGED)
    try:
        text = place.read_bytes()
    except OSError as error:
        message = f"`{folder}` is no complete backup: `{MANIFEST}` cannot be read ({error.strerror})"
        raise BadFileError(message, do="name a folder that `galatea backup` has printed") from error
    try:
        found = msgspec.json.decode(text, type=_Format)
        if found.format > FORMAT:
            message = (
                f"the backup in `{folder}` has format {found.format}, and this release knows formats up to {FORMAT}"
            )
            raise OperatorError(message, do=f"restore it with release {found.product} or a newer one")
        fields = msgspec.json.decode(text)
        said = fields.pop(_CHECKSUM, None)  # None: an earlier build wrote it
        if said not in (None, _checksum_of(fields)):
            raise BadFileError(f"`{place}` is damaged: it has changed since it was written", do=DAMAGED)
        return msgspec.convert(fields, Manifest, str_keys=True)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadFileError(f"`{place}` is damaged: {error}", do=DAMAGED) from error


class _Format(msgspec.Struct):
    format: int
    product: str = ""


def _checksum_of(fields: Mapping[str, object]) -> str:
    """The SHA-256 of a manifest, however its JSON is laid out. `fields`: all but the checksum."""
    return hashlib.sha256(msgspec.json.encode(fields, order="deterministic")).hexdigest()


def checksum(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    found = hashlib.sha256()
    with file.open("rb") as opened:
        while chunk := opened.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def check_file(folder: Path, saved: SavedFile) -> None:
    """Compare a file with the manifest. BadFileError if it is missing or has changed."""
    place = folder / saved.path
    if not place.resolve().is_relative_to(folder.resolve()):
        _refuse(folder, saved, "lies outside of it")
    if place.exists() and not place.is_file():
        _refuse(folder, saved, "is not a regular file")
    try:
        size = place.stat().st_size
        if size != saved.bytes:
            _refuse(folder, saved, f"has {size:,} bytes instead of {saved.bytes:,}")
        if checksum(place) != saved.sha256:
            _refuse(folder, saved, "has changed since it was written: its SHA-256 is another one")
    except OSError as error:
        message = f"the file `{saved.path}` of the backup in `{folder}` cannot be read ({error.strerror})"
        raise BadFileError(message, do=DAMAGED) from error
    try:
        rows = pq.read_metadata(place).num_rows
    except (pa.ArrowException, OSError) as error:
        message = f"the file `{saved.path}` of the backup in `{folder}` is no Parquet file: {error}"
        raise BadFileError(message, do=DAMAGED) from error
    if rows != saved.rows:
        _refuse(folder, saved, f"has {rows:,} rows instead of {saved.rows:,}")


def _refuse(folder: Path, saved: SavedFile, how: str) -> NoReturn:
    raise BadFileError(f"the file `{saved.path}` of the backup in `{folder}` {how}", do=DAMAGED)


def same_topics(manifest: Manifest, now: Mapping[str, str]) -> set[str]:
    """Return the topics whose offsets still mean what they meant. `now`: topic to id."""
    return {topic for topic, saved in manifest.topics.items() if now.get(topic) == saved.id}
