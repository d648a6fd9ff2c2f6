"""Several metrics in one answer, all of one moment; of one metric its own answer, as if it were asked for alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import UnsetType

from master_dataset.errors import RangeTooLongError
from serving_layer.errors import BadQuestionError, TooManyMetricsError
from serving_layer.query import metric_answer
from serving_layer.query.questions import MetricRequest
from serving_layer.query.resolved_query import ResolvedQuery
from serving_layer.query.snapshot import ReadSnapshot, provenance
from serving_layer.query.stores import PageRequest
from serving_layer.responses.encoding import encode, encoded
from serving_layer.responses.metrics import MetricResponse, MetricsResponse
from serving_layer.store.cells import MergedCells

MOST_METRICS = 10
"""How many one answer may hold."""
MOST_BYTES = 32 * 1024 * 1024
"""Of an answer that is kept whole until it is written: of several metrics, or of a table. Half a million points."""


@dataclass(frozen=True)
class MetricsRequest:
    """Questions that differ in the metric alone. `is_table`: the answer becomes a file, where nobody sees `next`."""

    asks: tuple[MetricRequest, ...]
    page: PageRequest = field(default_factory=PageRequest)
    is_table: bool = False

    @property
    def one(self) -> MetricRequest:
        """The first: in all but the metric they are the same."""
        return self.asks[0]


def named(text: str) -> tuple[str, ...]:
    """The metrics of a path, separated by commas. BadQuestionError, TooManyMetricsError."""
    names = tuple(name.strip() for name in text.split(","))
    if len(names) > MOST_METRICS:
        message = f"{len(names)} metrics in one answer are more than {MOST_METRICS}."
        raise TooManyMetricsError(message, do="Ask in several questions.")
    if len(names) > 1 and not all(names):
        message = f"`metric={text}` has a comma without a name beside it."
        raise BadQuestionError(message, do="Separate names by one comma each.")
    if len(set(names)) < len(names):
        message = f"`metric={text}` names a metric twice."
        raise BadQuestionError(message, do="Name each metric once.")
    return names


async def answer(
    asked: Sequence[ResolvedQuery], basis: ReadSnapshot, cells: MergedCells, following: str | UnsetType | None
) -> bytes:
    """The body. `following`: `next`, where there is more, or pages were asked for. RangeTooLongError."""
    if len(asked) == 1:
        response = await metric_answer.answer(asked[0], basis, cells)
        response.next = following
        return encode(response)
    bodies, once = [], cells.for_one_answer()
    for each in asked:
        bodies.append(encode(await metric_answer.answer(each, basis, once)))
        refuse_long(sum(map(len, bodies)))
    answers = [encoded(body, MetricResponse) for body in bodies]
    return encode(MetricsResponse(answers, provenance(basis), following))


def refuse_long(length: int) -> None:
    """RangeTooLongError if so many bytes are more than one such answer may hold."""
    if length > MOST_BYTES:
        message = f"The answer is longer than {MOST_BYTES // 2**20} MiB as JSON."
        do = "Ask with a coarser `grain`, for a shorter range, for fewer metrics, or with a lesser `limit`."
        raise RangeTooLongError(message, do=do)
