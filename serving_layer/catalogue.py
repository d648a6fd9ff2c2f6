"""What may be asked for, by name."""

from collections.abc import Mapping
from dataclasses import dataclass

from views.core import View
from views.core.metric import Metric


@dataclass(frozen=True)
class Catalogue:
    """The registered views and metrics, or those of a test."""

    views: Mapping[str, View]
    metrics: Mapping[str, Metric]

    def listed(self) -> list[dict[str, object]]:
        """Every metric: what it is called, how it is made, and from which views. No `grains` means all."""
        return [
            {
                "metric": metric.id,
                "name": metric.name,
                "formula": metric.formula.text,
                "unit": metric.unit,
                "views": metric.views,
                "flags": metric.flags,
                "grains": metric.grains,
                "note": metric.note,
            }
            for metric in self.metrics.values()
        ]
