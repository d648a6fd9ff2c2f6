"""Airflow over REST: start a recompute, read its state, write the progress of a command into the note of its task."""

import os
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self
from urllib.parse import quote, urlsplit

import httpx
import structlog

from deploy.airflow.component import NAME, local_url
from deploy.local.records import read_states
from master_dataset.errors import AirflowUnavailableError, GalateaError, OperatorError, RequestError
from master_dataset.tls import Tls, TlsNames, TlsProblem

if TYPE_CHECKING:
    from deploy.settings import Settings
    from views.control.recompute import RecomputeRequest

RECOMPUTE, REBUILD = "recompute", "rebuild_views"
"""The DAG that recomputes on demand, whose runs have the ids of the recomputes; the scheduled DAG."""
LONGEST_NOTE = 1000
_SECONDS = 10.0
HTTPS_PORT = 443
NAMES = TlsNames("GALATEA_AIRFLOW", "GALATEA_AIRFLOW_URL", "GALATEA_AIRFLOW_URL")


class Task(NamedTuple):
    """A task of a DAG run."""

    dag: str
    run: str
    name: str

    @property
    def path(self) -> str:
        """In Airflow's REST API."""
        return f"dags/{self.dag}/dagRuns/{quote(self.run, safe='')}/taskInstances/{quote(self.name, safe='')}"


@dataclass(frozen=True)
class AirflowClient:
    """The REST API of one Airflow, as one user. `ca_file`: authorities to trust for https; if empty, the usual ones.

    Every method raises AirflowUnavailableError if Airflow does not answer, and OperatorError if it rejects the user.
    """

    url: str
    user: str
    password_file: Path
    ca_file: str = ""

    @classmethod
    def of(cls, settings: "Settings") -> "AirflowClient":
        """Return the client of the Airflow that the settings name."""
        airflow = settings.airflow
        return cls(airflow.url, airflow.user, Path(airflow.password_file), airflow.ca_file)

    def trigger(self, recompute_id: str, request: "RecomputeRequest", reason: str) -> None:
        """Start a DAG run for this recompute. One that exists stays as it is.

        RequestError if Airflow rejects the request.
        """
        self._begin(RECOMPUTE, recompute_id, {**request.to_form(), "reason": reason}, reason)

    def begin_rebuild(self, run_id: str, reason: str) -> None:
        """Start the scheduled DAG now. A run of that id that exists stays as it is."""
        self._begin(REBUILD, run_id, {}, reason)

    def reach(self) -> None:
        """Check that Airflow lets the user in, and knows the scheduled DAG."""
        self._check(self._request("GET", f"dags/{REBUILD}"))

    def state(self, run_id: str, dag: str = RECOMPUTE) -> str:
        """Return the state of a DAG run, by default of a recompute: queued, running, success or failed."""
        answer = self._request("GET", f"dags/{dag}/dagRuns/{quote(run_id, safe='')}")
        self._check(answer)
        return str(self._field(answer, "state"))

    def state_of(self, task: Task) -> str | None:
        """Return the state of a task: success, skipped, failed, upstream_failed and others; None before the first."""
        answer = self._request("GET", task.path)
        self._check(answer)
        state: str | None = self._field(answer, "state")
        return state

    def is_working(self) -> bool:
        """Whether a run of the scheduled DAG, or of a recompute, is running, or queued by a DAG that is not paused."""
        for dag in (REBUILD, RECOMPUTE):
            known = self._request("GET", f"dags/{dag}")
            self._check(known)
            states = "state=running" if self._field(known, "is_paused") else "state=queued&state=running"
            answer = self._request("GET", f"dags/{dag}/dagRuns?{states}&limit=1")
            self._check(answer)
            if self._field(answer, "total_entries"):
                return True
        return False

    def write_note(self, task: Task, note: str) -> None:
        """Replace the note of a task."""
        self._check(self._request("PATCH", f"{task.path}?update_mask=note", {"note": note[:LONGEST_NOTE]}))

    def _begin(self, dag: str, run_id: str, conf: Mapping[str, Any], reason: str) -> None:
        run = {"dag_run_id": run_id, "logical_date": None, "conf": conf, "note": reason[:LONGEST_NOTE]}
        answer = self._request("POST", f"dags/{dag}/dagRuns", run)
        if answer.status_code in {httpx.codes.BAD_REQUEST, httpx.codes.UNPROCESSABLE_ENTITY}:
            raise RequestError(f"Airflow rejects the recompute: {_detail(answer)}", do="GET /v1/views lists the views")
        if answer.status_code != httpx.codes.CONFLICT:
            self._check(answer)

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        try:
            with httpx.Client(base_url=self.url, timeout=_SECONDS, trust_env=False, verify=self._trust()) as client:
                who = {"username": self.user, "password": self._password()}
                token = client.post("/auth/token", json=who)
                self._check(token)
                bearer = {"Authorization": f"Bearer {self._field(token, 'access_token')}"}
                return client.request(method, f"/api/v2/{path}", json=body, headers=bearer)
        except httpx.HTTPError as error:
            if (problem := self._tls_problem()) is not None:
                kind = AirflowUnavailableError if problem.passes else OperatorError
                raise kind(f"Airflow cannot be reached: {problem.message}", do=problem.do) from error
            do = "galatea status, or start Airflow"
            raise AirflowUnavailableError(
                f"Airflow at `{self.url}` does not respond: {type(error).__name__}", do=do
            ) from error

    def _trust(self) -> ssl.SSLContext:
        """Return the authorities that Airflow's certificate is checked against."""
        if not self.ca_file:
            return httpx.create_ssl_context(trust_env=False)
        try:
            return Tls(self.ca_file).context()
        except OSError as error:  # of which an error of OpenSSL is a kind
            message = f"`{self.ca_file}` of GALATEA_AIRFLOW_CA_FILE cannot be used: {error}"
            raise OperatorError(message, do="correct the path, or its rights; it has to be PEM") from error

    def _tls_problem(self) -> TlsProblem | None:
        place = urlsplit(self.url)
        if place.scheme != "https" or not self.ca_file:
            return None
        return Tls(self.ca_file).problem(place.hostname or "", place.port or HTTPS_PORT, NAMES)

    def _password(self) -> str:
        try:
            return self.password_file.read_text().strip()
        except OSError as error:
            message = f"the password of Airflow's user `{self.user}` cannot be read in `{self.password_file}`"
            raise AirflowUnavailableError(message, do="galatea up, or set GALATEA_AIRFLOW_PASSWORD_FILE") from error

    def _check(self, answer: httpx.Response) -> None:
        if answer.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            message = f"Airflow at `{self.url}` does not let the user `{self.user}` do this"
            raise OperatorError(message, do="correct GALATEA_AIRFLOW_USER or GALATEA_AIRFLOW_PASSWORD_FILE")
        if not answer.is_success:
            message = f"Airflow at `{self.url}` answered {answer.status_code}: {_detail(answer)}"
            raise AirflowUnavailableError(message, do="check that its DAGs are loaded, then try again")

    def _field(self, answer: httpx.Response, name: str) -> Any:  # noqa: ANN401 - of JSON
        try:
            return answer.json()[name]
        except (ValueError, LookupError, TypeError) as error:
            message = f"what answers at `{self.url}` is not Airflow's REST API: {_detail(answer)}"
            raise AirflowUnavailableError(
                message, do="correct GALATEA_AIRFLOW_URL, or what stands before it"
            ) from error


def _detail(answer: httpx.Response) -> str:
    """Return the start of the response's text."""
    return answer.text[:200].replace("\n", " ")


EVERY_SECONDS, AFTER_A_FAILURE_SECONDS = 5.0, 60.0
_TASK = ("AIRFLOW_CTX_DAG_ID", "AIRFLOW_CTX_DAG_RUN_ID", "AIRFLOW_CTX_TASK_ID")

log = structlog.get_logger()


class Steps(Protocol):
    """What shows progress."""

    def step(self, done: int, total: int, what: str) -> None:
        """Show that `done` of `total` are done, and what is worked on."""


class TaskNote:
    """Progress of a command as the note of its Airflow task, if it has one. Failure to write it is only logged."""

    def __init__(self, client: AirflowClient, task: Task | None) -> None:
        """`task` is the one whose note is written; None outside Airflow."""
        self._client, self._task = client, task
        self._again_at = float("-inf")

    @classmethod
    def of_this_process(cls, settings: "Settings") -> Self:
        """Return the note of the task that started this process."""
        named = [os.environ.get(name, "") for name in _TASK]
        return cls(AirflowClient.of(settings), Task(*named) if all(named) else None)

    def step(self, done: int, total: int, what: str) -> None:
        """Write the progress, but not each time, because each note is a request."""
        if time.monotonic() >= self._again_at:
            self.write(f"{what} {done}/{total}")

    def write(self, text: str) -> None:
        """Write the note now."""
        if self._task is None:
            return
        try:
            self._client.write_note(self._task, text)
            self._again_at = time.monotonic() + EVERY_SECONDS
        except GalateaError as error:
            self._again_at = time.monotonic() + AFTER_A_FAILURE_SECONDS
            log.warning("airflow.note_not_written", task=self._task.name, error=error.message)


class ProgressAndNote:
    """Progress on the terminal and in the note of the Airflow task."""

    def __init__(self, steps: Steps, note: TaskNote) -> None:
        """`steps` shows it on the terminal."""
        self._steps, self._note = steps, note

    def step(self, done: int, total: int, what: str) -> None:
        """Show that `done` of `total` are done, and what is worked on."""
        self._steps.step(done, total, what)
        self._note.step(done, total, what)


def airflow_of(settings: "Settings") -> AirflowClient | None:
    """Return the Airflow of GALATEA_AIRFLOW_URL, or of the local stack if it was ever started with it; else None."""
    is_named = settings.airflow.url != local_url(settings)
    return AirflowClient.of(settings) if is_named or NAME in read_states(settings.home) else None
