"""The key file of the deployment: made at first use, and the same for every process, wherever it runs.

Cassandra knows the fingerprint of the key. So a process with another key stops with a sentence, before it takes every
API key for forged, and none makes a key of its own where the deployment has one already.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deploy.cassandra import session_of
from deploy.secret_files import kept_secret, read_private
from master_dataset.errors import OperatorError
from master_dataset.secrets_key import SecretsKey
from master_dataset.signed_alerts import SignedAlertsTable
from views.alerts.signatures import AlertSignatures

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings

SETTING = "GALATEA_SECRETS_KEY_FILE"
_FINGERPRINT = "fingerprint"
_GUIDE = "docs/how-to/keys.md#the-key-file"


def secrets_key_of(settings: "Settings") -> SecretsKey:
    """Return the key of this deployment, for a process of it. See `secrets_key`."""
    return secrets_key(settings, session_of(settings.cassandra.address))


def secrets_key(settings: "Settings", session: "Session") -> SecretsKey:
    """Return the key of this deployment; it is made if there is none yet.

    Args:
        settings: They say where the file is.
        session: It uses Galatea's keyspace.

    Raises:
        OperatorError: The file is missing here, cannot be used, or is not the one of this deployment.
    """
    row = _registered(session)
    place = key_file(settings)
    if row and not place.exists() and not settings.paths.secrets_key_file:
        message = f"the key file of this deployment is not here: `{place}`"
        raise OperatorError(message, do=f"copy it from another home, or set {SETTING}; see {_GUIDE}")
    key = _read(settings)
    if row and row.value != key.fingerprint:
        message = f"`{place}` is another key ({key.fingerprint}) than that of this deployment ({row.value})"
        raise OperatorError(message, do=f"put the right file there, or set {SETTING}; see {_GUIDE}")
    return key


def alert_signatures_of(settings: "Settings") -> AlertSignatures:
    """Return what signs alerts and their corrections in this deployment. OperatorError as `secrets_key`."""
    session = session_of(settings.cassandra.address)
    key = secrets_key(settings, session)
    return AlertSignatures(key, SignedAlertsTable(session, key))


def register(settings: "Settings", session: "Session") -> SecretsKey:
    """Return the key, and let Cassandra know its fingerprint. OperatorError as `secrets_key`."""
    add = session.prepare("INSERT INTO secrets_key (name, value) VALUES (?, ?) IF NOT EXISTS")
    session.execute(add, (_FINGERPRINT, secrets_key(settings, session).fingerprint))
    return secrets_key(settings, session)  # two at once have made one each, if they have no common home


def register_first(settings: "Settings", session: "Session") -> None:
    """Make the key of a new deployment.

    One that has a key is left alone, also if the file here is another one or is lost: what mends that needs Cassandra.
    """
    if _registered(session) is None:
        register(settings, session)


def replace_key(settings: "Settings", session: "Session") -> SecretsKey:
    """Let the file of this home be the key of the deployment, because the former one is lost. OperatorError."""
    key = _read(settings)
    session.execute(
        session.prepare("INSERT INTO secrets_key (name, value) VALUES (?, ?)"), (_FINGERPRINT, key.fingerprint)
    )
    return key


def key_file(settings: "Settings") -> Path:
    """Return the place of the key file."""
    return Path(settings.paths.secrets_key_file or settings.home / "secrets.key")


def _registered(session: "Session") -> Any:  # noqa: ANN401 - a row of the driver
    return session.execute(session.prepare("SELECT value FROM secrets_key WHERE name = ?"), (_FINGERPRINT,)).one()


def _read(settings: "Settings") -> SecretsKey:
    place = key_file(settings)
    if settings.paths.secrets_key_file:
        return SecretsKey.of_file(read_private(SETTING, place), str(place))
    return SecretsKey.of_file(kept_secret(place, SecretsKey.new_text()), str(place))
