"""A Spark driver requires a secret: others on the machine could read what it broadcasts, and stop it."""

from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ENDPOINT = "HeartbeatReceiver"


class Stranger:
    """A program that speaks Spark's protocol, with the security manager that it is given."""

    def __init__(self, spark: "SparkSession", security: Any) -> None:
        self._java = spark.sparkContext._jvm.org.apache.spark  # type: ignore[union-attr]  # noqa: SLF001 - no other way to Java
        self._port = int(spark.sparkContext.getConf().get("spark.driver.port") or 0)
        conf = self._java.SparkConf(False)  # noqa: FBT003 - without the settings of this process
        conf.set("spark.rpc.askTimeout", "10s").set("spark.rpc.lookupTimeout", "10s")
        if security is None:
            defaults = [getattr(self._java.SecurityManager, f"$lessinit$greater$default${place}")() for place in (2, 3)]
            security = self._java.SecurityManager(conf, *defaults)
        self._own = self._java.rpc.RpcEnv.create("stranger", "127.0.0.1", 0, conf, security, True)  # noqa: FBT003 - a client

    def finds(self, endpoint: str) -> str:
        """The reference to an endpoint of the driver."""
        address = self._java.rpc.RpcAddress("127.0.0.1", self._port)
        return str(self._own.setupEndpointRef(address, endpoint).toString())

    def close(self) -> None:
        self._own.shutdown()


@pytest.fixture
def stranger(spark: "SparkSession") -> "Iterator[Stranger]":
    own = Stranger(spark, None)
    yield own
    own.close()


def test_who_does_not_know_the_secret_of_a_driver_reaches_nothing_in_it(
    spark: "SparkSession", stranger: Stranger
) -> None:
    knows = Stranger(spark, spark.sparkContext._jvm.org.apache.spark.SparkEnv.get().securityManager())  # type: ignore[union-attr]  # noqa: SLF001 - no other way to Java
    try:
        assert ENDPOINT in knows.finds(ENDPOINT)
    finally:
        knows.close()

    with pytest.raises(Py4JJavaError):
        stranger.finds(ENDPOINT)
