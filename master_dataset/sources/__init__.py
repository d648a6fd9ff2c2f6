"""The sources that Galatea knows: every module in this folder that holds a `Source` is registered."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any

from master_dataset.errors import DefinitionError, UnknownNameError
from master_dataset.source import Source


@cache
def registered_sources() -> Mapping[str, Source[Any]]:
    """Return every source by its topic, sorted.

    Raises:
        DefinitionError: Two sources claim one topic.
    """
    found: dict[str, Source[Any]] = {}
    for module in sorted(info.name for info in iter_modules(__path__)):
        for value in vars(import_module(f"{__name__}.{module}")).values():
            if not isinstance(value, Source) or found.get(value.topic) is value:
                continue
            if value.topic in found:
                raise DefinitionError(f"Two sources claim the topic `{value.topic}`.", do=f"Rename it in {module}.py.")
            found[value.topic] = value
    return MappingProxyType(dict(sorted(found.items())))


def source_named(name: str) -> Source[Any]:
    """Return one source by name.

    Raises:
        UnknownNameError: There is no such source; names the nearest one.
    """
    sources = registered_sources()
    if name not in sources:
        raise UnknownNameError("source", name, sources)
    return sources[name]
