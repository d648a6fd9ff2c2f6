"""The catalogue: the metrics and views that can be asked for, by name."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version

import orjson

from serving_layer.limits import RANGES, Ranges
from serving_layer.responses.metrics import ListedMetric
from views.core import View
from views.core.metric import Metric


@dataclass(frozen=True)
class Catalogue:
    """The registered views and metrics, and the longest ranges of a query."""

    views: Mapping[str, View]
    metrics: Mapping[str, Metric]
    ranges: Ranges = RANGES

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the code that answers depend on: definitions, formulas, and versions of libraries."""
        definitions = {name: view.definition_hash for name, view in self.views.items()}
        content = orjson.dumps([_versions(), definitions, [repr(metric) for metric in self.metrics.values()]])
        return hashlib.blake2b(content, digest_size=16).hexdigest()

    def listed(self) -> list[ListedMetric]:
        """Every metric, for `GET /v1/metrics`. Without `grains` it has all."""
        return [
            ListedMetric(
                metric=metric.id,
                name=metric.name,
                formula=metric.formula.text,
                unit=metric.unit,
                views=metric.views,
                flags=metric.flags,
                grains=metric.grains,
                needs_by=metric.needs_by,
                note=metric.note,
            )
            for metric in self.metrics.values()
        ]


@cache
def _versions() -> Sequence[str]:
    """The versions of the libraries that answers depend on."""
    return [version(name) for name in ("galatea-platform", "holidays", "tzdata", "pyarrow")]
