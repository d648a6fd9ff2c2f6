"""Which generation's rows a rollback may be shown with."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from batch_layer.recompute.rollback import covers
from views.control.generation import Generation
from views.control.publication import Publication

CUT = datetime(2026, 11, 21, 18, tzinfo=UTC)
TO = Publication(3, CUT, "run-3", 1, CUT, "test", "a test", {"sales": "a"})
GENERATION = Generation(2, CUT, {"sales": "a"}, {})


def test_rows_that_begin_at_the_cut_or_before_cover_it_if_they_were_made_with_the_same_definitions() -> None:
    assert covers(GENERATION, TO)
    assert covers(replace(GENERATION, emit_from=CUT - timedelta(hours=1)), TO)
    assert not covers(replace(GENERATION, emit_from=CUT + timedelta(seconds=1)), TO)
    assert not covers(replace(GENERATION, definitions={"sales": "b"}), TO)
    assert not covers(None, TO)
