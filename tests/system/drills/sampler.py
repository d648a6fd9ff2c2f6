"""Queries REST all the time: no number may exceed what was sent or shrink, and no publication may be older."""

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import httpx

from tests.system.drills.history import History, Operation
from tests.system.drills.receipts import STORES

if TYPE_CHECKING:
    from deploy.settings import Settings

PAUSE_SECONDS = 0.1
PATIENCE_SECONDS = 60.0
"""So long an answer may take once every component is back: after that nobody is answered."""
SHOWN = 500
"""How many characters of an answer are printed."""
METRIC = "total_transactions_count"


class Handed(Protocol):
    """What was sent so far."""

    @property
    def receipts(self) -> int:
        """How many an answer may contain."""


@dataclass
class Seen:
    """`wrong`: what never may be, in words."""

    answers: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    publication: int = -1
    receipts: int = 0
    wrong: list[str] = field(default_factory=list)


class Sampler(threading.Thread):
    """One client, as patient as a dashboard."""

    def __init__(
        self, settings: "Settings", expected: Handed, span: dict[str, str], history: History | None = None
    ) -> None:
        """`history`: gets every answer; None: nobody keeps one."""
        super().__init__(name="sampler", daemon=True)
        self._settings, self._expected, self._span, self._history = settings, expected, span, history
        self._leave = threading.Event()
        self._looked_at = 0
        self.seen = Seen()

    def run(self) -> None:
        """The work of a thread. Its own failure counts as wrong."""
        try:
            key = (self._settings.home / "operator.key").read_text().strip()
            base, trust = self._settings.api_url, self._settings.api_trust
            headers = {"Authorization": f"Bearer {key}"}
            with httpx.Client(base_url=base, headers=headers, timeout=30, trust_env=False, verify=trust) as client:
                while not self._leave.wait(PAUSE_SECONDS):
                    self._ask(client)
        except Exception as error:  # noqa: BLE001 - reported with what is wrong
            self.seen.wrong.append(f"nobody could ask: {_named(error)}")

    def leave(self) -> Seen:
        """What was seen."""
        self._leave.set()
        self.join()
        return self.seen

    def wrong(self, patience_seconds: float = PATIENCE_SECONDS) -> list[str]:
        """What was wrong since this was last asked: also that nobody asks any more, or that nobody was answered."""
        deadline = time.monotonic() + patience_seconds
        while self.is_alive() and self.seen.answers == self._looked_at and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)
        found, self.seen.wrong = self.seen.wrong, []
        if not self.is_alive():
            found.insert(0, "nobody asked any more: the sampler has ended")
        elif self.seen.answers == self._looked_at:
            found.insert(0, f"nobody was answered; refused so far: {dict(self.seen.refusals)}")
        self._looked_at = self.seen.answers
        return found

    def _ask(self, client: httpx.Client) -> None:
        try:
            response = client.get(f"/v1/metrics/{METRIC}", params={"store": STORES, "grain": "total", **self._span})
        except httpx.TransportError as error:
            self.seen.refusals[type(error).__name__] += 1  # a cut connection is no answer
            return
        if response.status_code not in {httpx.codes.OK, httpx.codes.SERVICE_UNAVAILABLE}:
            self.seen.wrong.append(f"{response.status_code}: {response.text}"[:SHOWN])
        try:
            if response.status_code == httpx.codes.OK:
                self._look_at(response.json())
            else:
                code = response.json()["code"]
                self.seen.refusals[code] += 1
                self._refused(response.status_code, code)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody can read that answer
            self.seen.wrong.append(f"{response.status_code} {_named(error)}: {response.text}"[:SHOWN])
            self._refused(response.status_code, "")

    def _refused(self, status: int, code: str) -> None:
        if self._history is not None:
            self._history.add(Operation.REFUSAL, status=status, code=code)

    def _look_at(self, body: dict[str, Any]) -> None:
        seen, publication = self.seen, body["as_of"]["publication"]
        receipts = total_of(body)
        seen.answers += 1
        if receipts is None:
            return
        if self._history is not None:
            values = {each["store"]: each["points"][0]["value"] for each in body["series"]}
            self._history.add(Operation.READ, publication=publication, values=values)
        if publication < seen.publication:
            seen.wrong.append(f"publication {publication} after {seen.publication}")
        if receipts > self._expected.receipts:
            seen.wrong.append(f"{receipts} receipts, and {self._expected.receipts} were sent, at {body['as_of']}")
        if receipts < seen.receipts:
            seen.wrong.append(f"{receipts} receipts after {seen.receipts}, at {body['as_of']}")
        seen.publication, seen.receipts = publication, receipts


def total_of(body: Mapping[str, Any]) -> int | None:
    """The sum of an answer; None while the first publication is not there, and some of it is not known.

    A day that has not begun has no value.
    """
    points = [point for series in body["series"] for point in series["points"]]
    if any("loading" in point.get("flags", ()) for point in points):
        return None
    total: int = sum(point["value"] or 0 for point in points)
    return total


def _named(error: Exception) -> str:
    return f"{type(error).__name__} {error}"
