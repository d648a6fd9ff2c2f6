"""The JDBC driver of PostgreSQL in a Java of its own, driven from Python: as BI tools written in Java connect."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from deploy.jars import ensure_jars, jar_paths
from deploy.java import find_java
from deploy.settings import Settings
from tests.support.sql_server import HOST


class Jdbc:
    """A running Java with the driver."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._jvm = gateway.jvm

    def connect(self, port: int, user: str, password: str, **properties: str) -> Any:
        """A `java.sql.Connection`."""
        known = self._jvm.java.util.Properties()
        for name, value in {"user": user, "password": password, **properties}.items():
            known.setProperty(name, value)
        return self._jvm.org.postgresql.Driver().connect(f"jdbc:postgresql://{HOST}:{port}/galatea", known)

    def date(self, text: str) -> Any:
        """A `java.sql.Date`."""
        return self._jvm.java.sql.Date.valueOf(text)


def rows(results: Any) -> list[dict[str, Any]]:
    """What is left of a `java.sql.ResultSet`: texts, by the labels of its columns."""
    labels = [results.getMetaData().getColumnLabel(n + 1) for n in range(results.getMetaData().getColumnCount())]
    found = []
    while results.next():
        found.append({label: results.getString(label) for label in labels})
    return found


@contextmanager
def jdbc() -> Iterator[Jdbc]:
    """Start a Java, and end it."""
    settings = Settings()
    ensure_jars(settings, parts=("jdbc",))
    [driver] = jar_paths("jdbc", settings)
    port = launch_gateway(classpath=str(driver), java_path=str(find_java().executable), die_on_exit=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        yield Jdbc(gateway)
    finally:
        gateway.shutdown()
