"""Every argument of a query is known wherever it has to be: to the client, the command line and the day cells."""

import inspect
from dataclasses import fields
from typing import get_type_hints

from galatea.cli.ask import ask
from galatea.client.whole_answers import MetricOptions
from serving_layer.api.metrics import MetricQuery
from serving_layer.query.resolve import ResolvedQuery

OF_CLIENT = {"start", "end"}
"""Arguments of the client's methods that are not options."""
ONLY_FILES = {"format"}
NOT_IN_THE_TERMINAL = {"comp", "only_covered", "context", "limit", "after"}
"""What `galatea ask` leaves out: it shows values alone, of all stores."""
DECIDES = {"metric", "grain", "compare", "left_out", "only_open", "only_covered"}
"""What `takes_day_cells` looks at."""
ANY_WINDOWS = {
    "views", "by", "stores", "merges_stores", "groups", "attributes", "selection", "asked", "ranking", "reads_targets",
    "context", "proofs",
}  # fmt: skip
"""What says which series there are, and beside what, but leaves out no window of a day. `takes_day_cells` looks at the
dimensions and the selection by way of the sums that they make.
"""


def test_the_client_and_the_command_line_have_every_argument_of_rest() -> None:
    of_rest = set(MetricQuery.model_fields) - ONLY_FILES

    assert set(get_type_hints(MetricOptions)) == of_rest - OF_CLIENT
    of_terminal = {"range" if name == "named_range" else name for name in inspect.signature(ask).parameters}
    assert of_terminal >= of_rest - NOT_IN_THE_TERMINAL


def test_whoever_adds_an_argument_says_whether_day_cells_can_answer_it() -> None:
    assert {each.name for each in fields(ResolvedQuery)} == DECIDES | ANY_WINDOWS
