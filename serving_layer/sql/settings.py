"""The settings of a session that clients send and read.

Three have an effect: `timezone`, `statement_timeout`, and `galatea.at_least`, the token of events that must be counted.
"""

import re
from collections.abc import Mapping
from copy import copy
from typing import NamedTuple, Self
from zoneinfo import ZoneInfo

from serving_layer.errors import BadQuestionError
from serving_layer.sql.names import SERVER_VERSION
from serving_layer.sql.results import SqlStateError
from serving_layer.sql.suggestions import did_you_mean
from serving_layer.store.at_least import Demand
from serving_layer.timeline import zone_named
from views.control.token import EventToken, InvalidTokenError

TIMEZONE, TIMEOUT, AT_LEAST = "timezone", "statement_timeout", "galatea.at_least"
MOST_LENGTH, MOST_SAVEPOINTS, MOST_NAME = 1000, 1000, 200
"""Characters of a value; savepoints of a transaction."""
DEFAULTS: Mapping[str, str] = {
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_table_access_method": "heap",
    "default_transaction_deferrable": "off",
    "default_transaction_isolation": "repeatable read",
    "default_transaction_read_only": "on",
    "enable_bitmapscan": "on",
    "enable_hashjoin": "on",
    "enable_indexscan": "on",
    "enable_mergejoin": "on",
    "enable_nestloop": "on",
    "enable_seqscan": "on",
    "escape_string_warning": "on",
    "extra_float_digits": "1",
    AT_LEAST: "",
    "geqo": "on",
    "idle_in_transaction_session_timeout": "0",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "off",
    "jit": "off",
    "lc_collate": "C.UTF-8",
    "lc_ctype": "C.UTF-8",
    "lc_messages": "C.UTF-8",
    "lc_monetary": "C.UTF-8",
    "lc_numeric": "C.UTF-8",
    "lc_time": "C.UTF-8",
    "lock_timeout": "0",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "row_security": "on",
    "search_path": '"$user", public',
    "server_encoding": "UTF8",
    "server_version": SERVER_VERSION,
    "server_version_num": f"{int(SERVER_VERSION.split('.')[0])}0000",
    "standard_conforming_strings": "on",
    TIMEOUT: "0",
    "synchronize_seqscans": "on",
    TIMEZONE: "UTC",
    "transaction_isolation": "repeatable read",
    "transaction_read_only": "on",
    "work_mem": "4MB",
}
_FIXED = frozenset(
    {
        "in_hot_standby",
        "integer_datetimes",
        "is_superuser",
        "lc_collate",
        "lc_ctype",
        "max_identifier_length",
        "max_index_keys",
        "server_encoding",
        "server_version",
        "server_version_num",
    }
)
"""Settings that cannot be changed."""
_ONLY: Mapping[str, re.Pattern[str]] = {
    "client_encoding": re.compile(r"utf-?8|unicode", re.IGNORECASE),
    "datestyle": re.compile(r"iso(, ?(mdy|dmy|ymd))?|mdy|dmy|ymd", re.IGNORECASE),
    "intervalstyle": re.compile("postgres", re.IGNORECASE),
    "standard_conforming_strings": re.compile("on|true|1|yes", re.IGNORECASE),
    "bytea_output": re.compile("hex", re.IGNORECASE),
    "default_transaction_read_only": re.compile("on|true|1|yes|off|false|0|no", re.IGNORECASE),
    "transaction_read_only": re.compile("on|true|1|yes", re.IGNORECASE),
}
"""Values that results are written in; no others are known."""
_DURATION = re.compile(r"(\d{1,9}) ?(us|ms|s|min|h|d)?", re.ASCII)
_UNITS = {"us": 0.000001, "ms": 0.001, None: 0.001, "s": 1, "min": 60, "h": 3600, "d": 86_400}
_OFFSET = re.compile(r"(utc|gmt)?([+-]?)(\d{1,2})(?::?00)?", re.IGNORECASE | re.ASCII)


class _Kept(NamedTuple):
    """The settings at the begin of a transaction, or at a savepoint of this name."""

    savepoint: str
    values: Mapping[str, str]
    session: Mapping[str, str]


class SessionSettings:
    """The settings of one session. A transaction that is rolled back takes its changes back."""

    def __init__(self, user: str) -> None:
        """`user`: the name that the caller connected with."""
        self._defaults: Mapping[str, str] = {**DEFAULTS, "session_authorization": user}
        self._values: Mapping[str, str] = self._defaults
        """What holds now. Replaced as a whole, as `_session` is, so that savepoints share them."""
        self._session: Mapping[str, str] = self._defaults
        """What holds after a commit: without SET LOCAL."""
        self._kept: list[_Kept] = []
        """From the begin of the transaction on; empty outside of one."""

    def copy(self) -> Self:
        """A copy that is in no transaction."""
        same = copy(self)
        same._kept = []  # noqa: SLF001 - of the same class
        return same

    @property
    def values(self) -> Mapping[str, str]:
        """Every setting, by name."""
        return self._values

    @property
    def demand(self) -> Demand | None:
        """What an answer has to contain; None if that was not set."""
        text = self._values[AT_LEAST]
        return Demand(EventToken.of_text(text)) if text else None

    @property
    def zone(self) -> ZoneInfo:
        """The time zone of the session."""
        return zone_named(self._values[TIMEZONE])

    def seconds(self, most: float) -> float:
        """How long a statement may take: what was set, but at most so many seconds."""
        found = _DURATION.fullmatch(self._values[TIMEOUT])
        asked = int(found[1]) * _UNITS[found[2]] if found else 0
        return min(asked or most, most)

    def get(self, name: str) -> str:
        """The value of a setting. SqlStateError 42704 if there is none of that name."""
        if name not in self._values:
            raise _unknown(name)
        return self._values[name]

    def begin(self) -> None:
        """Begin a transaction."""
        self._kept = [_Kept("", self._values, self._session)]

    def savepoint(self, name: str) -> None:
        """Remember the settings for `back_to`. SqlStateError 54000 if there are too many savepoints."""
        if len(self._kept) > MOST_SAVEPOINTS:
            message = f"A transaction has at most {MOST_SAVEPOINTS:,} savepoints."
            raise SqlStateError("54000", message, "Release those that are no longer needed.")
        require_short_name(name)
        self._kept.append(_Kept(name, self._values, self._session))

    def back_to(self, savepoint: str) -> None:
        """Restore the settings of a savepoint, which stays. SqlStateError 3B001 if there is none of that name."""
        del self._kept[self._place(savepoint) + 1 :]
        _, self._values, self._session = self._kept[-1]

    def release(self, savepoint: str) -> None:
        """Forget a savepoint and those after it. SqlStateError 3B001 if there is none of that name."""
        del self._kept[self._place(savepoint) :]

    def end(self, *, is_committed: bool) -> None:
        """End a transaction, if there is one."""
        if self._kept and not is_committed:
            self._session = self._kept[0].session
        self._values, self._kept = self._session, []

    def _place(self, savepoint: str) -> int:
        found = [place for place, each in enumerate(self._kept) if place and each.savepoint == savepoint]
        if not found:
            raise SqlStateError("3B001", f'There is no savepoint "{savepoint[:60].lower()}".', "Send SAVEPOINT first.")
        return found[-1]

    def set(self, name: str, value: str | None, *, is_local: bool = False) -> None:
        """Change a setting.

        Args:
            name: in lower case; empty for all, which only can be reset.
            value: None for the default.
            is_local: until the end of the transaction; outside of one, nothing changes.

        Raises:
            SqlStateError: 42704 if there is none of that name, 55P02 if it cannot be changed, 22023 for a bad value.
        """
        if not name:
            self._values = self._session = self._defaults
            return
        if name not in self._values:
            raise _unknown(name)
        if name in _FIXED or name == "session_authorization":
            raise SqlStateError("55P02", f'The setting "{name}" cannot be changed.', "Leave it as it is.")
        checked = self._defaults[name] if value is None else _checked(name, value)
        if not is_local:
            self._session = {**self._session, name: checked}
        if self._kept or not is_local:
            self._values = {**self._values, name: checked}


def require_short_name(name: str) -> None:
    """Refuse a long name of what a connection keeps: a statement, portal, cursor or savepoint. SqlStateError 42622."""
    if len(name) > MOST_NAME:
        message = f"A name of {len(name):,} characters is too long: it may have {MOST_NAME}."
        raise SqlStateError("42622", message, "Choose a shorter one.")


def _unknown(name: str) -> SqlStateError:
    hint = did_you_mean(name, DEFAULTS, "SHOW ALL lists them.")
    return SqlStateError("42704", f'There is no setting "{name[:60]}".', hint)


def _checked(name: str, value: str) -> str:
    if name == AT_LEAST:
        try:
            return EventToken.of_text(value).text() if value else value
        except InvalidTokenError as error:
            hint = "Set what sent events or an answer had as their token."
            raise SqlStateError("22023", f'"{name}" {error}.', hint) from error
    if len(value) > MOST_LENGTH:
        raise SqlStateError("22023", f'The value of "{name}" is too long.', f"At most {MOST_LENGTH} characters.")
    if name == TIMEZONE:
        return _zone(value)
    if name == TIMEOUT and not _DURATION.fullmatch(value):
        raise SqlStateError(
            "22023", f'"{value[:60]}" is not a valid duration.', "Write milliseconds, or such as `30s`."
        )
    if name in _ONLY and not _ONLY[name].fullmatch(value):
        hint = f'Leave it as it is: "{DEFAULTS[name]}".'
        raise SqlStateError("22023", f'"{value[:60]}" is not a valid value of "{name}".', hint)
    return DEFAULTS[name] if name in ("client_encoding", "datestyle") else value


def _zone(value: str) -> str:
    offset = _OFFSET.fullmatch(value)
    if offset:  # a bare number counts to the east, and after the name of a zone to the west, as in `Etc/GMT+3`
        hours, is_west = int(offset[3]), (offset[2] == "-") != bool(offset[1])
        value = "UTC" if not hours else f"Etc/GMT{'+' if is_west else '-'}{hours}"
    try:
        return zone_named(value).key
    except BadQuestionError as error:
        raise SqlStateError("22023", error.message, error.do) from error
