"""The files of this repository as its rules look at them."""

import ast
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = (
    "views",
    "master_dataset",
    "batch_layer",
    "speed_layer",
    "serving_layer",
    "dags",
    "deploy",
    "lab",
    "galatea",
)
BINARY = {".png", ".jpg", ".webp", ".ico", ".parquet", ".woff2", ".gz", ".bin"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tracked() -> Sequence[Path]:
    """Every file that git would take, also those not yet added; without a git every file that is not hidden."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - the git of whoever tests
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        return [ROOT / name for name in sorted(listed.stdout.splitlines()) if (ROOT / name).is_file()]
    visible = (path for path in sorted(ROOT.rglob("*")) if path.is_file())
    return [path for path in visible if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)]


def product() -> list[Path]:
    """The Python files of the packages."""
    return [path for path in tracked() if path.suffix == ".py" and named(path).split("/")[0] in PACKAGES]


def suites() -> list[Path]:
    """The files that hold tests."""
    return [path for path in tracked() if path.name.startswith("test_") and path.suffix == ".py"]


def pages() -> list[Path]:
    """The Markdown files."""
    return [path for path in tracked() if path.suffix == ".md"]


def named(path: Path) -> str:
    """The path as a person writes it."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[Function]:
    """Every function and method of a file."""
    return (node for node in ast.walk(tree(path)) if isinstance(node, Function))


def text(path: Path) -> str:
    """The text of a file; of a binary one, nothing."""
    return "" if path.suffix in BINARY else path.read_text(encoding="utf-8")
