"""Which views there are: every View found in a file of this folder, by name."""

import importlib
import pkgutil
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path

from master_dataset.errors import DefinitionError, UnknownNameError
from master_dataset.visits.visit import VisitRules
from views.core.view import VISIT_RULES, View


@cache
def registered_views() -> tuple[View, ...]:
    """All views, sorted by name. DefinitionError if two files give the same name."""
    found: dict[str, View] = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.ispkg or module.name == "registry":
            continue
        loaded = importlib.import_module(f"views.{module.name}")
        for view in vars(loaded).values():
            if not isinstance(view, View):
                continue
            if view.name in found:
                raise DefinitionError(f"two files define the view `{view.name}`", do=f"rename one in {module.name}.py")
            found[view.name] = view if view.question else replace(view, question=(loaded.__doc__ or "").strip())
    return tuple(found[name] for name in sorted(found))


def current_definitions(epoch_seconds: int, visit_gap_seconds: int) -> dict[str, str]:
    """View name to hash, and what else rows of both layers must agree on, by `@` names."""
    agreed = {
        "@epoch_seconds": str(epoch_seconds),
        VISIT_RULES: VisitRules.of_gap(timedelta(seconds=visit_gap_seconds)).fingerprint(),
    }
    return {view.name: view.definition_hash for view in registered_views()} | agreed


def view_named(name: str) -> View:
    """The view of that name. UnknownNameError with the nearest name if there is none."""
    views = {view.name: view for view in registered_views()}
    if name not in views:
        raise UnknownNameError("view", name, views)
    return views[name]
