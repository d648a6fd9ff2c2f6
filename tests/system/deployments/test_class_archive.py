"""Java takes Spark's classes from the archive of the installation."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.class_archive import make_class_archive
from deploy.settings import Settings

LEAST = 5_000
SESSION = """
from deploy.settings import Settings
from deploy.spark import Work, spark_session
assert spark_session(Settings(), "classes", Work.SHORT, memory_mb=512, partitions=2).range(5).count() == 5
"""


@pytest.mark.nightly
def test_a_session_loads_its_classes_from_the_archive(tmp_path: Path) -> None:
    assert make_class_archive(Settings(home=tmp_path)) == ""

    loaded = tmp_path / "loaded"
    environment = {"GALATEA_HOME": str(tmp_path), "JDK_JAVA_OPTIONS": f"-Xlog:class+load:file={loaded}"}
    subprocess.run([sys.executable, "-c", SESSION], env={**os.environ, **environment}, check=True, timeout=600)

    assert loaded.read_text().count("shared objects file (top)") > LEAST
