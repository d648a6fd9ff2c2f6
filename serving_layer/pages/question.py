"""A question of a page: asked of the answers in this process, and shown as the address that gives the same bytes."""

from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

from serving_layer.query.questions import MetricAsk
from serving_layer.query.timeline import Grain


@dataclass(frozen=True)
class Question:
    """As MetricAsk, as far as pages ask. Stores are always named: all of them would be those of others too."""

    metric: str
    stores: tuple[str, ...]
    start: str
    end: str
    grain: Grain
    by: tuple[str, ...] = ()
    compare: str | None = None
    context: str | None = None
    partial: bool = False

    @property
    def ask(self) -> MetricAsk:
        """For Answers."""
        return MetricAsk(
            self.metric,
            self.stores,
            self.start,
            self.end,
            self.grain,
            by=self.by,
            partial=self.partial,
            compare=self.compare,
            context=self.context,
        )

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """For the address."""
        told = [("store", store) for store in self.stores]
        told += [("from", self.start), ("to", self.end), ("grain", self.grain)]
        told += [("by", name) for name in self.by]
        told += [("compare", self.compare)] if self.compare else []
        told += [("context", self.context)] if self.context else []
        return [*told, ("partial", "true")] if self.partial else told

    @property
    def path(self) -> str:
        """The address of the answer as JSON."""
        return f"/v1/metrics/{quote(self.metric, safe='')}?{urlencode(self.arguments)}"

    def file_path(self, form: str) -> str:
        """The address of its points as a table; what stands beside them does not fit into one."""
        return f"{replace(self, context=None).path}&format={form}"
