"""Which metrics there are: every Metric found in a file of this folder, checked against the registered views."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType

from master_dataset.errors import DefinitionError
from views.core.metric import Metric
from views.registry import registered_views


@cache
def registered_metrics() -> Mapping[str, Metric]:
    """All metrics by id, sorted. DefinitionError if two share an id or one takes a term that no view gives."""
    views = {view.name: view for view in registered_views()}
    found: dict[str, Metric] = {}
    for metric in _found():
        if metric.id in found:
            raise DefinitionError(f"Two metrics are called `{metric.id}`.", do="Rename one of them.")
        for term in metric.terms.values():
            if metric.view_of(term) not in views:
                message = f"The metric `{metric.id}` uses `{term.text}`, whose view does not exist."
                raise DefinitionError(message, do=f"Use one of: {', '.join(views)}.")
            term.columns(views[metric.view_of(term)])
        found[metric.id] = metric
    return MappingProxyType(dict(sorted(found.items())))


def _found() -> Iterator[Metric]:
    for module in sorted(info.name for info in iter_modules([str(Path(__file__).parent)])):
        if module == "registry":
            continue
        for value in vars(import_module(f"views.metrics.{module}")).values():
            listed: Iterable[object] = value if isinstance(value, tuple) else (value,)
            yield from (metric for metric in listed if isinstance(metric, Metric))
