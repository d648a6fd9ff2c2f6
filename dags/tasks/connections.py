"""Where a deployment is: Airflow's connections `galatea` and `galatea_spark`, as the command's own variables.

Read when a task runs, never while DAG files are parsed.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

DEPLOYMENT, SPARK = "galatea", "galatea_spark"
COMMAND = "command"
"""What the extra of `galatea` may hold beside settings: the command's own path."""

_SETTING = re.compile(r"[a-z][a-z0-9_]*")
_AS_SPARK_SAYS = {"queue": "spark.yarn.queue", "namespace": "spark.kubernetes.namespace"}
"""What Airflow's own form for a Spark connection asks for, and the option that it stands for."""


class Deployment(NamedTuple):
    """`command`: the command or its path. `environment`: its settings, `GALATEA_...` to value."""

    command: str
    environment: dict[str, str]


def deployment() -> Deployment:
    """The deployment of this Airflow. AirflowFailException, which is not tried again, if it cannot be told."""
    extra = _extra(_connection(DEPLOYMENT))
    command = str(extra.pop(COMMAND, "galatea"))
    for name in (name for name in extra if not _SETTING.fullmatch(name)):
        raise AirflowFailException(
            f"`{name}` in the connection `{DEPLOYMENT}` is no setting, such as `kafka_bootstrap`"
        )
    settings = {f"GALATEA_{name.upper()}": _text(value) for name, value in extra.items()}
    return Deployment(command, settings | _spark(_connection(SPARK)))


def _spark(connection: Connection) -> dict[str, str]:
    """The master URL as Airflow's Spark provider reads it, and further options of Spark."""
    extra = _extra(connection)
    if extra.get("deploy-mode", "client") != "client":
        raise AirflowFailException(f"the connection `{SPARK}` asks for another deploy mode than `client`")
    options = {name: _text(value) for name, value in extra.items() if name.startswith("spark.")}
    options |= {option: _text(extra[name]) for name, option in _AS_SPARK_SAYS.items() if extra.get(name)}
    host = connection.host or ""
    master = host if "://" in host or not connection.port else f"spark://{host}"
    if not master:
        raise AirflowFailException(f"the connection `{SPARK}` names no master: set its host, such as `local[2]`")
    port = f":{connection.port}" if connection.port else ""
    more = {"GALATEA_SPARK_CONF": json.dumps(options)} if options else {}
    return {"GALATEA_SPARK_MASTER": master + port, **more}


def _connection(name: str) -> Connection:
    try:
        found: Connection = Connection.get(name)
    except AirflowNotFoundException as error:
        raise AirflowFailException(
            f"there is no connection `{name}`: docs/how-to/airflow.md says what it holds"
        ) from error
    return found


def _extra(connection: Connection) -> dict[str, Any]:
    """Its JSON. Airflow's own reader would take text that is none for nothing."""
    try:
        read = json.loads(connection.extra or "{}")
    except ValueError:
        read = None
    if not isinstance(read, Mapping):
        raise AirflowFailException(f"the extra of the connection `{connection.conn_id}` is no JSON object")
    return dict(read)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
