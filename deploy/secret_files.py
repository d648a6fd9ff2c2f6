"""Files that settings name: passwords, keys and certificates. They are checked before a client uses them."""

import os
import re
import secrets
import stat
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from master_dataset.delta.fsync import fsync_path
from master_dataset.errors import OperatorError
from master_dataset.kafka.connection import CERTIFICATES, KEYS, pem_blocks
from master_dataset.tls import Tls

if TYPE_CHECKING:
    from pydantic import SecretStr

    from deploy.sections import TlsSettings
    from serving_layer.http.certificate import ServerCertificate

_OTHERS, _ROOT = 0o077, 0
_OTHERS_BUT_GROUP_READS = 0o037
RENEWAL_SECONDS = 2.0
"""How long certificate and key may be of two pairs, while both are replaced."""
_KIND = re.compile(r"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----")


def write_private(place: Path, text: str) -> None:
    """Write a file that only its owner can read from the first byte on. It is complete, or not there, also on disk."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f"{place.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(place)
    fsync_path(place.parent)


def operator_key(place: Path) -> str:
    """Return the key of the operator of this home. The process that asks for it first makes it, for all of them."""
    return kept_secret(place, secrets.token_urlsafe(32))


def kept_secret(place: Path, new: str) -> str:
    """Return the secret that a file of the home holds: `new`, if there was none and no other process is quicker."""
    if not place.exists():
        own = place.with_name(f"{place.name}.{secrets.token_hex(4)}")
        write_private(own, new)
        try:
            os.link(own, place)
        except FileExistsError:
            own.unlink()  # another process was quicker
        except OSError:
            own.replace(place)  # a file system without links
        else:
            own.unlink()
        fsync_path(place.parent)
    return stored_secret(place)


def stored_secret(place: Path) -> str:
    """Return the secret that a file of the home holds. OSError if there is none, or it cannot be read.

    If others than its owner can read it, that right is removed, as with the home: Kubernetes gives the group of a
    volume the right to all files at each mount. Some shared file systems know no rights, so nothing is refused.
    """
    with suppress(OSError):
        if place.stat().st_mode & _OTHERS:
            place.chmod(0o600)
    return place.read_text(encoding="utf-8").strip()


def secret_of(setting: str, given: "SecretStr", file: str) -> str:
    """Return a secret that is given by a setting, or by a file.

    Args:
        setting: The variable of the secret; that of the file has `_FILE` at its end.
        given: Its value; empty if there is none.
        file: The path; empty if there is none.

    Returns:
        The secret, of a file without the line end; empty if neither is given.

    Raises:
        OperatorError: The file is missing, empty, not readable here, or readable by others.
    """
    if not file:
        return given.get_secret_value()
    secret = read_private(f"{setting}_FILE", Path(file)).removesuffix("\n").removesuffix("\r")
    if not secret:
        raise OperatorError(f"`{file}` of {setting}_FILE is empty", do="write the secret into it")
    return secret


def check_certificates(setting: str, file: str) -> None:
    """Check that a file has certificates. OperatorError if it has none, or cannot be read."""
    if not pem_blocks(_read(setting, Path(file)), CERTIFICATES):
        message = f"`{file}` of {setting} has no certificate in PEM"
        raise OperatorError(message, do="correct the path, or convert the file")


def checked_tls(prefix: str, tls: Tls, *, in_java: bool) -> Tls:
    """Check that the files of a client can be used, before a driver reports something else.

    Args:
        prefix: Start of the variables, such as `GALATEA_KAFKA`.
        tls: The files.
        in_java: Whether Java uses them too: it reads keys in one format only.

    Returns:
        The same.

    Raises:
        OperatorError: One is missing, not readable here, not PEM, or a key is readable by others or does not fit.
    """
    if tls.ca_file:
        check_certificates(f"{prefix}_CA_FILE", tls.ca_file)
    if tls.certificate_file:
        check_certificates(f"{prefix}_CERTIFICATE_FILE", tls.certificate_file)
        _check_key(prefix, tls, read_private(f"{prefix}_KEY_FILE", Path(tls.key_file)), in_java=in_java)
    try:
        _check_pair(tls)
    except OSError as error:  # of which an error of OpenSSL is a kind
        names = ", ".join(f"{prefix}_{name}" for name in ("CA_FILE", "CERTIFICATE_FILE", "KEY_FILE"))
        do = f"check that the key belongs to the certificate, and {prefix}_KEY_PASSWORD"
        raise OperatorError(f"the files of {names} cannot be used: {error}", do=do) from error
    return tls


def _check_pair(tls: Tls) -> None:
    """Load the files. A key that does not fit gets two seconds: the pair may just be renewed, one file after the other.

    OSError if they cannot be used.
    """
    deadline = time.monotonic() + RENEWAL_SECONDS
    while True:
        try:
            tls.context()
        except OSError as error:
            if getattr(error, "reason", "") != "KEY_VALUES_MISMATCH" or time.monotonic() > deadline:
                raise
            time.sleep(RENEWAL_SECONDS / 20)
        else:
            return


def server_certificate(tls: "TlsSettings") -> "ServerCertificate | None":
    """Return the certificate of REST, SQL and metrics; None without one. OperatorError if its files cannot be used."""
    if not tls.is_on:
        return None
    password = secret_of("GALATEA_TLS_KEY_PASSWORD", tls.key_password, tls.key_password_file)
    files = Tls("", tls.certificate_file, tls.key_file, password)
    checked_tls("GALATEA_TLS", files, in_java=False)
    return _certificate(files.certificate_file, files.key_file, files.key_password)


@lru_cache(maxsize=1)
def _certificate(certificate_file: str, key_file: str, key_password: str) -> "ServerCertificate":
    """One for all servers of a process, so that a renewal is noticed and counted once."""
    from serving_layer.http.certificate import ServerCertificate  # noqa: PLC0415 - clients do not need it

    return ServerCertificate(certificate_file, key_file, key_password)


def _check_key(prefix: str, tls: Tls, text: str, *, in_java: bool) -> None:
    found = _KIND.search(text)
    if found is None:
        raise OperatorError(f"`{tls.key_file}` of {prefix}_KEY_FILE has no private key in PEM", do="correct the path")
    if in_java and found[1] not in KEYS:
        message = f"`{tls.key_file}` of {prefix}_KEY_FILE has the format `{found[1]}`, which Java cannot read"
        do = f"convert it to PKCS #8: openssl pkcs8 -topk8 -in {tls.key_file} -out FILE"
        raise OperatorError(message, do=do)
    if "ENCRYPTED" in text and not tls.key_password:
        message = f"`{tls.key_file}` of {prefix}_KEY_FILE is encrypted"
        raise OperatorError(message, do=f"set {prefix}_KEY_PASSWORD or {prefix}_KEY_PASSWORD_FILE")


def read_private(setting: str, file: Path) -> str:
    """Read a file that only its owner may read; if that is root, as Kubernetes mounts secrets, its group may, too."""
    text = _read(setting, file)
    found = file.stat()
    allowed = _OTHERS_BUT_GROUP_READS if found.st_uid == _ROOT else _OTHERS
    if found.st_mode & allowed:
        message = f"`{file}` of {setting} can be read by others (mode {stat.S_IMODE(found.st_mode):o})"
        raise OperatorError(message, do=f"chmod 600 {file}, or mount the secret with mode 0400, or 0440 for a group")
    return text


def _read(setting: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        message = f"{setting} names `{file}`, which cannot be read: {why}"
        raise OperatorError(message, do=f"correct {setting}, or the rights of the file") from error
