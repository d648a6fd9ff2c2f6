"""Which object store this process uses, and which URIs are on it.

`s3://bucket/prefix` is on the object store, everything else is a local folder. Like the credentials, of which there is
one usual chain (variables, profile, web identity, the machine's role), the object store belongs to the process: it is
set once, when the settings are read. `storage` opens what is there.
"""

from dataclasses import dataclass
from pathlib import Path

_SCHEMES = ("s3://", "s3a://")


@dataclass(frozen=True)
class ObjectStore:
    """How every client reaches the object store.

    `endpoint`: a URL; empty for Amazon's own. `region`: empty for that of the environment or profile. `path_style`:
    whether the bucket is in the path of a URL instead of its host.
    """

    endpoint: str = ""
    region: str = ""
    path_style: bool = False

    @property
    def is_encrypted(self) -> bool:
        """Whether connections use TLS."""
        return not self.endpoint.startswith("http://")

    @property
    def shown(self) -> str:
        """Its name in sentences."""
        return f"the object store `{self.endpoint}`" if self.endpoint else "the object store"


_current = ObjectStore()


def use(store: ObjectStore) -> None:
    """Set the object store of this process."""
    global _current  # noqa: PLW0603 - one per process, as the environment that its credentials come from
    _current = store


def object_store() -> ObjectStore:
    """Return the object store of this process."""
    return _current


def is_remote(uri: str) -> bool:
    """Whether the URI is on an object store."""
    return uri.startswith(_SCHEMES)


def local_path(uri: str) -> Path | None:
    """Return the folder or file that a URI names on this machine; None if it is on an object store."""
    return None if is_remote(uri) else Path(uri.removeprefix("file://"))


def spark_uri(uri: str) -> str:
    """Return the URI as Spark knows it, whose connector has a scheme of its own."""
    return f"s3a://{uri.partition('://')[2]}" if is_remote(uri) else uri
