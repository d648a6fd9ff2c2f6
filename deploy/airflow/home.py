"""Airflow's folder in the home: its database and logs, its keys and the one user's password, for the owner alone."""

import base64
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

_KEYS = """# Made once by `galatea up`; all else is set by variables.
[core]
fernet_key = {fernet}
[api]
secret_key = {secret}
[api_auth]
jwt_secret = {jwt}
"""


@dataclass(frozen=True)
class AirflowHome:
    """`home` is the stack's."""

    home: Path

    @property
    def folder(self) -> Path:
        """AIRFLOW_HOME."""
        return self.home / "airflow"

    @property
    def passwords(self) -> Path:
        """The password in the form that Airflow reads."""
        return self.folder / "passwords.json"

    def prepare(self, user: str) -> None:
        """Make what is not there yet. The password may be changed in its file; Airflow follows at its start."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        keys = self.folder / "airflow.cfg"
        if not keys.exists():
            fernet = base64.urlsafe_b64encode(os.urandom(32)).decode()
            _write(keys, _KEYS.format(fernet=fernet, secret=secrets.token_urlsafe(32), jwt=secrets.token_urlsafe(64)))
        password = self.home / "airflow.password"
        if not password.exists():
            _write(password, secrets.token_urlsafe(16) + "\n")
        _write(self.passwords, json.dumps({user: password.read_text().strip()}))


def _write(place: Path, text: str) -> None:
    """Readable by its owner alone from the first byte on."""
    part = place.with_suffix(".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    part.replace(place)
