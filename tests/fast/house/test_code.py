"""Constructs that must not occur in the code."""

import ast
import re
from functools import cache

from tests.fast.house.tree import named, product, suites, text, tracked, tree

PROCESS_EDGES = {"deploy/services/runner.py", "deploy/prompt_correction.py"}
"""Outermost loops of a process or thread: they log, and leave with an exit code or try again."""
STRANGERS = {
    "deploy/telemetry/export_queue.py",
    "deploy/telemetry/lineage.py",
    "speed_layer/webhooks/client.py",
    "serving_layer/sql/conversation.py",
    "serving_layer/sql/database.py",
    "serving_layer/sql/server.py",
}
"""Calls servers and transports, or answers clients and statements, that anybody may have written.

Whatever comes of a call, a statement or a connection is logged or passed on, and ends nothing else.
"""
LOSES_ON_PURPOSE = {"lab/guarantees/experiments/auto_commit.py"}
"""Shows what comes of it."""
HANDS_ON = {"dags/tasks/command.py", "serving_layer/sql/database_process.py"}
"""Gives its own environment, or what is not ours in it, to a child process, and looks at nothing in it."""
NOT_DONE = re.compile(r"pytest\.(skip|xfail|importorskip)|pytest\.mark\.(skip|skipif|xfail)|unittest\.skip")


def swallows_all(handler: ast.ExceptHandler) -> bool:
    """Cleaning up and raising again is no swallowing."""
    last = handler.body[-1]
    if isinstance(last, ast.Raise) and last.exc is None:
        return False
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or ast.unparse(kind) in {"Exception", "BaseException"} for kind in kinds)


@cache
def handlers() -> list[tuple[str, int]]:
    return [
        (named(path), node.lineno)
        for path in product()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler) and swallows_all(node)
    ]


def test_only_the_edge_of_a_process_or_of_a_strangers_call_catches_every_exception() -> None:
    assert [place for place in handlers() if place[0] not in PROCESS_EDGES | STRANGERS] == []


def test_the_edges_are_where_the_lists_say() -> None:
    assert {name for name, _ in handlers()} == PROCESS_EDGES | STRANGERS


def test_no_consumer_commits_what_it_has_not_kept() -> None:
    setting = re.compile(r"""enable\.auto\.commit["']?\s*[:=,]\s*["']?true""", re.IGNORECASE)

    assert {named(path) for path in tracked() if setting.search(text(path))} == LOSES_ON_PURPOSE


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    here = "tests/fast/house/test_code.py"

    assert [named(path) for path in suites() if named(path) != here and NOT_DONE.search(text(path))] == []


def test_only_what_runs_the_platform_reads_the_environment() -> None:
    reads = re.compile(r"\bos\.(environ|getenv)\b")
    others = [path for path in product() if not named(path).startswith(("deploy/", "lab/", "galatea/cli/"))]

    assert {named(path) for path in others if reads.search(text(path))} == HANDS_ON


def test_every_todo_names_its_issue() -> None:
    loose = re.compile(r"#\s*(TODO|FIXME|XXX)(?!.*#\d+)")

    assert [named(path) for path in product() if loose.search(text(path))] == []
