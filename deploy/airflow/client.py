"""Airflow over REST: trigger a recompute, look at it, write a task's note."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import httpx

from master_dataset.errors import AirflowUnavailable, OperatorError, RequestError

if TYPE_CHECKING:
    from deploy.settings import Settings
    from views.control.recompute_request import RecomputeRequest

RECOMPUTE, REBUILD = "recompute", "rebuild_views"
"""The DAG that recomputes on demand, whose runs have the ids of the recomputes; the one that the clock starts."""
LONGEST_NOTE = 1000
_SECONDS = 10.0


class Task(NamedTuple):
    """A task of a DAG run."""

    dag: str
    run: str
    name: str


@dataclass(frozen=True)
class AirflowClient:
    """One Airflow and who asks it. Every question raises AirflowUnavailable if it is away.

    OperatorError if it does not let this user in.
    """

    url: str
    user: str
    password_file: Path

    @classmethod
    def of(cls, settings: "Settings") -> "AirflowClient":
        """The Airflow that the settings name."""
        return cls(settings.airflow_url, settings.airflow_user, Path(settings.airflow_password_file))

    def trigger(self, recompute_id: str, request: "RecomputeRequest", reason: str) -> None:
        """Begin a DAG run for this recompute. One that was begun already stays as it is.

        RequestError if Airflow refuses what is asked.
        """
        self._begin(RECOMPUTE, recompute_id, {**request.to_form(), "reason": reason}, reason)

    def begin_rebuild(self, run_id: str, reason: str) -> None:
        """Begin at once what the clock begins otherwise. A run that was begun already stays as it is."""
        self._begin(REBUILD, run_id, {}, reason)

    def state(self, run_id: str, dag: str = RECOMPUTE) -> str:
        """Airflow's word for a DAG run, by default that of a recompute: queued, running, success or failed."""
        answer = self._ask("GET", f"dags/{dag}/dagRuns/{quote(run_id, safe='')}")
        self._must(answer)
        return str(answer.json()["state"])

    def write_note(self, task: Task, note: str) -> None:
        """Say how far a task is; what it said before is replaced."""
        run, name = quote(task.run, safe=""), quote(task.name, safe="")
        path = f"dags/{task.dag}/dagRuns/{run}/taskInstances/{name}?update_mask=note"
        self._must(self._ask("PATCH", path, {"note": note[:LONGEST_NOTE]}))

    def _begin(self, dag: str, run_id: str, conf: Mapping[str, Any], reason: str) -> None:
        run = {"dag_run_id": run_id, "logical_date": None, "conf": conf, "note": reason[:LONGEST_NOTE]}
        answer = self._ask("POST", f"dags/{dag}/dagRuns", run)
        if answer.status_code in {httpx.codes.BAD_REQUEST, httpx.codes.UNPROCESSABLE_ENTITY}:
            raise RequestError(f"Airflow refuses the recompute: {_detail(answer)}", do="GET /v1/views lists the views")
        if answer.status_code != httpx.codes.CONFLICT:
            self._must(answer)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        try:
            with httpx.Client(base_url=self.url, timeout=_SECONDS, trust_env=False) as client:
                who = {"username": self.user, "password": self._password()}
                token = client.post("/auth/token", json=who)
                self._must(token)
                bearer = {"Authorization": f"Bearer {token.json()['access_token']}"}
                return client.request(method, f"/api/v2/{path}", json=body, headers=bearer)
        except httpx.HTTPError as error:
            do = "galatea status, or start Airflow"
            raise AirflowUnavailable(
                f"Airflow at `{self.url}` does not answer: {type(error).__name__}", do=do
            ) from error

    def _password(self) -> str:
        try:
            return self.password_file.read_text().strip()
        except OSError as error:
            message = f"the password of Airflow's user `{self.user}` cannot be read in `{self.password_file}`"
            raise AirflowUnavailable(message, do="galatea up, or set GALATEA_AIRFLOW_PASSWORD_FILE") from error

    def _must(self, answer: httpx.Response) -> None:
        if answer.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            message = f"Airflow at `{self.url}` does not let the user `{self.user}` do this"
            raise OperatorError(message, do="mend GALATEA_AIRFLOW_USER or GALATEA_AIRFLOW_PASSWORD_FILE")
        if not answer.is_success:
            message = f"Airflow at `{self.url}` answered {answer.status_code}: {_detail(answer)}"
            raise AirflowUnavailable(message, do="look whether its DAGs are loaded, then again")


def _detail(answer: httpx.Response) -> str:
    """Its own words, shortened; never a whole page."""
    return answer.text[:200].replace("\n", " ")
