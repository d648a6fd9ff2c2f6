"""What is done wrong with rows, numbers, answers and tenants."""

from tests.model.rules import Rule
from tests.seeded.bug import Bug, Kind
from tests.seeded.histories import never_differ, without
from tests.seeded.line import Line, Text
from tests.seeded.money_law import totals_are_exact
from tests.seeded.receipts_law import each_is_shown_as_it_came_first
from tests.seeded.speed_law import merged_is_exact_at_every_cut
from tests.unit.serving.test_tenants import SHOPS, of
from tests.unit.serving.test_tenants import test_answers_are_not_remembered_across_tenants as answers_are_apart
from tests.unit.serving.test_tenants import (
    test_no_answer_of_any_route_has_a_trace_of_another_tenant as no_answer_has_a_trace,
)

EXACT = "batch before the cut and speed from it on are each event once, at every cut (I02, I11)"
SHOWN = "each receipt is shown as it was delivered first"
HISTORIES = "no answer differs from the naive recompute (I02, I03)"
TENANTS = "no answer has a trace of another tenant (I16)"
FRESH_POINTER = "__import__('dataclasses').replace(basis.pointer, {0}=(await self.batch._published.pointer()).{0})"
AGAIN = f"basis = __import__('dataclasses').replace(basis, pointer={FRESH_POINTER})\n    "
CHANGED = ("speed", "send", "send", "send", "rebuild", "deploy", "speed", "rebuild")
READ = "serving_layer.merged_cells:MergedCells.read"


def routes_are_apart() -> None:
    """Each tenant asks each route."""
    for tenant in SHOPS:
        no_answer_has_a_trace(of(*SHOPS), tenant)


BUGS_OF_CELLS = (
    Bug(
        "counter", "a replayed micro-batch adds to its rows instead of overwriting them",
        Kind.LAW, EXACT, merged_is_exact_at_every_cut,
        (Line("speed_layer.rows:SpeedRows._rows", "key.epoch, micro_batch)",
              "key.epoch, __import__('time').monotonic_ns())"),),
    ),
    Bug(
        "wall_clock", "rows are written by the wall clock (`USING TIMESTAMP`): the last delivery wins",
        Kind.LAW, SHOWN, each_is_shown_as_it_came_first,
        (Line("speed_layer.receipts:ReceiptWriter._rows", "said, -received, left",
              "said, __import__('time').time_ns() // 1000, left"),),
    ),
    Bug(
        "key_of_one_second", "the key of a receipt is its second, without till and number",
        Kind.LAW, SHOWN, each_is_shown_as_it_came_first,
        (Text("tests.seeded.tables:SCHEMA",
              "PRIMARY KEY ((day, operation_id), happened_at, vendor_fiscal_module, transaction_id)",
              "PRIMARY KEY ((day, operation_id), happened_at)"),),
    ),
    Bug(
        "publication_read_twice", "a request reads the published manifest again between two of its reads",
        Kind.MODEL, HISTORIES, never_differ(60),
        (Line(READ, "basis.refuse_unpublished(view)",
              f"{AGAIN.format('manifest')}basis.refuse_unpublished(view)"),),
    ),
    Bug("switch_per_view", "views are switched one after the other", Kind.MODEL, HISTORIES, without(Rule.ONE_SWITCH)),
    Bug(
        "local_time_windows", "windows are of the shop's clock, and not of UTC",
        Kind.SPARK, "the SQL of a view gives the cells of plain Python", where="tests/integration/test_seeded_bugs.py",
        changes=(Line("views.core.rows:window_sql", 'return f"unix_seconds({at}) -',
                      'at = f"from_utc_timestamp({at}, \'Europe/Bratislava\')"\n    return f"unix_seconds({at}) -'),),
    ),
    Bug(
        "float_money", "price times amount is worked out in floats",
        Kind.LAW, "the total of a line is exact, half-even", totals_are_exact,
        (Line("master_dataset.sources.pos_transactions:priced", "divmod(price_micro * amount, scale)",
              "(round(price_micro / 1e6 * (amount / 1e3) * (1e9 / scale)), 0)"),),
    ),
    Bug(
        "dedupe_in_one_micro_batch", "first deliveries are not looked up, so only repeats in a micro-batch are found",
        Kind.LAW, EXACT, merged_is_exact_at_every_cut,
        (Line("speed_layer.first_deliveries:FirstDeliveries.among",
              "settled(met, self._known(met))", "settled(met, {})"),),
    ),
    Bug(
        "route_without_tenant", "one route, that of the stores, forgets whose they are",
        Kind.WORLD, TENANTS, routes_are_apart,
        (Line("serving_layer.api.state:list_stores", " if caller.sees(stores[store])", ""),),
    ),
    Bug(
        "cache_without_tenant", "answers are remembered by question and moment, whoever asks",
        Kind.WORLD, TENANTS, lambda: answers_are_apart(of(*SHOPS)),
        (Line("serving_layer.answers:Answers._remembered", "(ask, caller.sight, moment.mark)", "(ask, moment.mark)"),),
    ),
    Bug(
        "cells_by_publication", "cells are keyed by the number of a publication, not by their run",
        Kind.MODEL, HISTORIES, without(Rule.CELLS_BY_RUN),
    ),
    Bug(
        "run_that_cleans_up", "a run deletes the cells that it has replaced",
        Kind.MODEL, HISTORIES, without(Rule.NO_CLEANING),
    ),
    Bug(
        "two_pointers", "publication and generation are two pointers: a publication leaves the generation where it was",
        Kind.MODEL, HISTORIES, never_differ(200, CHANGED),
        (Line("views.core.pointer_row:_values", "new.manifest, new.generation, definitions, seen.publication",
              "new.manifest, seen.generation, definitions, seen.publication"),),
    ),
)  # fmt: skip
