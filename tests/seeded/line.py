"""A line of the product, and what stands in its place while a bug is on."""

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

_CHANGED: dict[CodeType, str] = {}
"""What stands in a function now of which a line was changed already."""


class LineGone(Exception):
    """The product does not say this any more: the bug has to be looked for where it moved."""


@dataclass(frozen=True)
class Line:
    """`function`: `package.module:Class.method`. `right` stands in it exactly once."""

    function: str
    right: str
    wrong: str

    @contextmanager
    def on(self) -> Iterator[None]:
        """The function does the wrong thing for whoever calls it, however they imported it."""
        function = _function(self.function)
        said = _CHANGED.get(function.__code__) or textwrap.dedent(inspect.getsource(function))
        changed = _replaced(said, self.right, self.wrong, self.function)
        made: dict[str, Any] = {}
        exec(compile(_bare(changed), f"<{self.function} with a bug>", "exec"), function.__globals__, made)  # noqa: S102
        before, function.__code__ = function.__code__, made[function.__name__].__code__
        _CHANGED[function.__code__] = changed
        try:
            yield
        finally:
            function.__code__ = before


@dataclass(frozen=True)
class Text:
    """A text that a module has as a constant: a statement, a schema. `constant`: `package.module:NAME`."""

    constant: str
    right: str
    wrong: str

    @contextmanager
    def on(self) -> Iterator[None]:
        """Whoever asks the module for it is given the wrong one."""
        module_name, _, name = self.constant.partition(":")
        module = importlib.import_module(module_name)
        before = getattr(module, name)
        setattr(module, name, _replaced(before, self.right, self.wrong, self.constant))
        try:
            yield
        finally:
            setattr(module, name, before)


Change = Line | Text


def _replaced(text: str, right: str, wrong: str, where: str) -> str:
    if text.count(right) != 1:
        raise LineGone(f"`{right}` stands {text.count(right)} times in {where}")
    return text.replace(right, wrong)


def _bare(text: str) -> ast.Module:
    """Without what decorates it: a route that is made again stands in its router twice."""
    module = ast.parse(text)
    for each in module.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            each.decorator_list = []
    return module


def _function(name: str) -> FunctionType:
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = inspect.getattr_static(found, part)
    return _plain(found)


def _plain(found: Any) -> FunctionType:
    """Without what decorates it."""
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, staticmethod | classmethod):
        found = found.__func__
    plain: Callable[..., Any] = inspect.unwrap(found)
    assert isinstance(plain, FunctionType)
    return plain
