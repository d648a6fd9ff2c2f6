"""The page on drills lists every nightly test, so that nothing is left out of `make test` unseen."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.fast.house.tree import ROOT, text

PAGE = ROOT / "docs" / "explanation" / "drills.md"
ROW = re.compile(r"^\| `(tests/\S+\.py)` \((\d+)\) \| ", re.MULTILINE)


def nightly(path: Path) -> int:
    """How many test functions of a module are marked, by the module or one by one."""
    tree = ast.parse(text(path))
    whole = any(isinstance(each, ast.Assign) and "mark.nightly" in ast.unparse(each) for each in tree.body)
    return sum(1 for each in tree.body if is_test(each) and (whole or is_marked(each)))


def is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name.startswith("test_")


def is_marked(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        "mark.nightly" in ast.unparse(each) for each in node.decorator_list
    )


def modules() -> Iterator[Path]:
    yield from sorted((ROOT / "tests").rglob("test_*.py"))


def test_the_page_on_drills_names_every_nightly_test() -> None:
    marked = {path.relative_to(ROOT).as_posix(): count for path in modules() if (count := nightly(path))}

    assert {path: int(count) for path, count in ROW.findall(text(PAGE))} == marked
