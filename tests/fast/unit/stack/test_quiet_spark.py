"""Java of a command writes to a file, which is named if Java ends at once."""

import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError

from deploy.settings import Settings
from deploy.spark import Work, spark_session
from master_dataset.errors import OperatorError


def test_java_that_ends_at_once_is_said_with_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []

    def launch(_conf: object, popen: dict[str, Any]) -> None:
        popen["stderr"].write(b"no memory")
        said.extend((popen["stdout"].name, popen["stderr"].name))
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", launch)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr("deploy.spark.jar_paths", lambda *_: [])
    monkeypatch.setattr("deploy.spark.java_home_for_spark", lambda _: tmp_path)
    with patch.dict(os.environ), pytest.raises(OperatorError, match="Java ended before Spark had started") as ended:
        spark_session(Settings(home=tmp_path), "verify", Work.LONG, memory_mb=64, partitions=2)

    log = tmp_path / "logs" / "verify-spark.log"
    assert said == [str(log), str(log)]
    assert str(log) in ended.value.do
    assert log.read_bytes() == b"no memory"
