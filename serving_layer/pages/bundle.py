"""Questions that differ in the metric alone, asked as one, so that cells are read once. Scripts do the same."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from serving_layer.pages.question import Question
from serving_layer.query.metrics_answer import MOST_METRICS, MetricsAsk


class Bundle(NamedTuple):
    """In the order of their metrics, so that everybody who asks for the same asks for it in the same words."""

    questions: Sequence[Question]

    @property
    def ask(self) -> MetricsAsk:
        """For Answers."""
        return MetricsAsk(tuple(question.ask for question in self.questions))

    @property
    def apart(self) -> "Sequence[Bundle]":
        """Each of them alone: one that is refused must not take the others along."""
        return [Bundle([question]) for question in self.questions]


def bundles(questions: Iterable[Question]) -> Iterator[Bundle]:
    """All of them, each once."""
    alike: dict[Question, set[Question]] = {}
    for question in questions:
        alike.setdefault(replace(question, metric=""), set()).add(question)
    for group in alike.values():
        ordered = sorted(group, key=lambda each: each.metric)
        for start in range(0, len(ordered), MOST_METRICS):
            yield Bundle(ordered[start : start + MOST_METRICS])
