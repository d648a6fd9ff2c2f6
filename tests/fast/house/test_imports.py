"""What is loaded when a part is imported, seen from a fresh interpreter."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from galatea.cli.main import COMMANDS, FORMER_NAMES, GROUPS
from tests.fast.house.tree import ROOT, named, product, tree

BLOCKED = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
"""
SERVING = """
import importlib, pkgutil, serving_layer
for each in pkgutil.walk_packages(serving_layer.__path__, "serving_layer."):
    importlib.import_module(each.name)
"""
APPLICATION = """
from serving_layer.app import create_app
assert create_app(None, None, None, None, alerting=None, sessions=None).openapi()["paths"]
"""
VIEWS = """
from views import registered_views
from views.metrics import registered_metrics
assert registered_views() and registered_metrics()
"""


OF_DAGS = ("airflow.sdk", "airflow.providers", "dags", "views")


def run(code: str) -> str:
    """What a fresh interpreter prints; the test fails with its words if it ends badly."""
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def loaded(code: str, names: set[str]) -> set[str]:
    """Which of these packages are there after the code ran."""
    return set(run(f"{code}\nimport sys\nprint(*({names!r} & sys.modules.keys()))").split())


def test_views_load_no_engine_and_no_driver() -> None:
    assert loaded(VIEWS, {"pyspark", "pyarrow", "cassandra", "confluent_kafka", "fastapi", "airflow"}) == set()


def test_serving_loads_neither_spark_nor_airflow_and_works_without_pandas() -> None:
    code = BLOCKED.replace("{names}", "{'pandas'}") + SERVING + APPLICATION

    assert loaded(code, {"pyspark", "airflow"}) == set()


def test_processes_without_telemetry_import_nothing_of_it() -> None:
    code = "import deploy.batch\n"
    for name in ("api", "archive", "speed", "runner"):
        code += f"import deploy.services.{name}\n"

    assert loaded(code, {"opentelemetry", "openlineage"}) == set()


def test_short_verbs_do_not_wait_for_spark() -> None:
    code = "import typer\nfrom galatea.cli.main import app\n"
    for verb in ("status", "views", "metrics", "dead-letters"):
        code += f"typer.main.get_command(app).get_command(None, {verb!r})\n"

    assert loaded(code, {"pyspark", "airflow"}) == set()


def test_dags_import_the_sdk_providers_and_views_alone() -> None:
    found = {
        (named(path), name)
        for path in product()
        if named(path).startswith("dags/")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
    }

    assert any(name.startswith("airflow.sdk") for _, name in found)
    assert [
        (place, name)
        for place, name in sorted(found)
        if name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith(OF_DAGS)
    ] == []


def test_the_client_needs_its_few_packages_and_no_other() -> None:
    alone = BLOCKED.replace("in {names}", "not in sys.stdlib_module_names | {names}")
    of_httpx = {"httpx", "httpcore", "h11", "anyio", "idna", "certifi", "sniffio"}
    few = {"galatea", "msgspec", "stamina", "tenacity", "typing_extensions"} | of_httpx

    run(alone.replace("{names}", repr(few)) + "from galatea.client import AsyncClient, Client\nClient()")


HEAVY = {
    "airflow",
    "cassandra",
    "confluent_kafka",
    "datasketches",
    "deltalake",
    "fastapi",
    "holidays",
    "httpx",
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark",
    "uvicorn",
}


@pytest.mark.parametrize("words", [["--help"], ["status", "--help"], ["status", "--json"]], ids=" ".join)
def test_help_and_status_load_no_driver_and_no_engine(words: list[str], tmp_path: Path) -> None:
    code = f"""
import os, sys
os.environ["GALATEA_HOME"] = {str(tmp_path)!r}
sys.argv = ["galatea", *{words!r}]
from galatea.cli.main import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print()
print("LOADED", *({HEAVY!r} & sys.modules.keys()))
"""

    assert run(code).splitlines()[-1] == "LOADED"


def test_help_lists_every_verb_with_its_summary_as_its_file_says_it() -> None:
    listed = run("import sys\nsys.argv = ['galatea', '--help']\nfrom galatea.cli.main import main\nmain()")

    assert [name for name in (*COMMANDS, *GROUPS) if not re.search(rf"│ {name.replace('_', '-')} +\w", listed)] == []


@pytest.mark.parametrize(("former", "now"), FORMER_NAMES.items())
def test_a_former_name_of_a_command_is_understood_and_not_listed(former: str, now: str) -> None:
    code = "import sys\nsys.argv = {}\nfrom galatea.cli.main import main\nmain()"

    helps = [run(code.format(["galatea", name, "--help"])) for name in (former, now)]

    assert [line.split() for line in helps[0].replace(f"galatea {former}", f"galatea {now}").splitlines()] == [
        line.split() for line in helps[1].splitlines()
    ]
    assert f"│ {former} " not in run(code.format(["galatea", "--help"]))
