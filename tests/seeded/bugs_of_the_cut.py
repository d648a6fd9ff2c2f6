"""What is done wrong where batch ends and speed begins."""

from tests.model.rules import Rule
from tests.seeded.bug import Bug, Kind
from tests.seeded.fence_law import nothing_appears_behind_a_cut
from tests.seeded.histories import never_differ, without
from tests.seeded.ledger_law import a_ledger_is_written_when_speed_has_read_up_to_the_cut
from tests.seeded.line import Line
from tests.seeded.plan_law import every_visit_that_ends_is_read
from tests.seeded.speed_law import merged_is_exact_at_every_cut

EXACT = "batch before the cut and speed from it on are each event once, at every cut (I02, I11)"
HISTORIES = "no answer differs from the naive recompute (I02, I03)"
NOTHING_LATE = "what was stamped before a cut was there when its markers were passed (R2)"
FENCE = "batch_layer.fence:Fence"
WAITS = "while (left := (cut + self.skew - self.now()).total_seconds()) > 0:"
WAITED = f"    {WAITS}\n        waiting(left)\n        time.sleep(min(left, 1.0))\n"
MARKS = "    sent = _Markers(self.bootstrap).send(self.topics)\n"
STAMPS = "if stamp < cut + self.skew]"

BUGS_OF_THE_CUT = (
    Bug(
        "epoch_after_cut", "speed answers for epochs behind the cut (`epoch > cut`), and not from it on",
        Kind.MODEL, HISTORIES, never_differ(20), (Line("views.core.cut:is_fresh", "epoch >= cut", "epoch > cut"),),
    ),
    Bug(
        "cut_by_happened_at", "the epoch of an event is when it happened",
        Kind.LAW, EXACT, merged_is_exact_at_every_cut,
        (Line("speed_layer.additions:_of_some", 'events["received_at"]', 'events["happened_at"]'),),
    ),
    Bug(
        "cut_before_skew", "a cut is made as soon as this machine's clock has passed it",
        Kind.SIMULATION, NOTHING_LATE, nothing_appears_behind_a_cut,
        (Line(f"{FENCE}.newest_cut", "self.now() - self.skew", "self.now()"),
         Line(f"{FENCE}.mark", WAITS, "while (left := (cut - self.now()).total_seconds()) > 0:"),
         Line(f"{FENCE}.mark", STAMPS, "if stamp < cut]")),
    ),
    Bug(
        "end_before_skew", "the end is marked first, and the skew waited for afterwards",
        Kind.SIMULATION, NOTHING_LATE, nothing_appears_behind_a_cut,
        (Line(f"{FENCE}.mark", WAITED + MARKS, MARKS + WAITED), Line(f"{FENCE}.mark", STAMPS, "if False]")),
    ),
    Bug(
        "end_offset_for_marker", "the archive has to reach the end offsets, not a marker",
        Kind.SIMULATION, NOTHING_LATE, nothing_appears_behind_a_cut,
        (Line(f"{FENCE}.mark", "return Marked(cut, sent.offsets)",
              "return Marked(cut, {topic: {part: end - 1 for part, end in own.items()}"
              " for topic, own in self.ends().items()})"),),
    ),
    Bug(
        "cut_before_duplicates", "batch leaves out what is behind the cut before it drops duplicates",
        Kind.MODEL, HISTORIES, without(Rule.CUT_SELECTS_RESULTS),
    ),
    Bug(
        "age_before_duplicates", "an old delivery is left to batch before it is remembered",
        Kind.IMPOSSIBLE,
        "every identity says when its event happened, so no delivery is younger than the first: which test comes first "
        "changes nothing, and speed tests the age first on purpose. `test_every_identity_says_when_its_event_happened`",
    ),
    Bug(
        "no_room_for_the_future", "speed counts what is as old as what it remembers (A = D)",
        Kind.MODEL, HISTORIES, without(Rule.AGE_BELOW_HORIZON),
    ),
    Bug(
        "watermark_without_backlog", "the watermark is late by less than a generation has to catch up",
        Kind.IMPOSSIBLE, "there is no watermark any more: what has to be remembered is in Cassandra (ADR 0012)",
    ),
    Bug(
        "waiting_reset", "what waits for batch is counted from the last switch, and not from the cut",
        Kind.MODEL, "`waiting_for_batch` is what was too old since the cut (R6)", without(Rule.WAITING_BY_EPOCH),
    ),
    Bug(
        "touched_without_gap", "days are read again if something was received since, though a visit was still open",
        Kind.LAW, "every visit that ended since the base is read again (R12)", every_visit_that_ends_is_read,
        (Line("batch_layer.plan:Planner._touched", "since - gap, cut", "since, cut"),),
    ),
    Bug(
        "cut_off_the_grid", "a cut is any instant, and not the beginning of an epoch",
        Kind.MODEL, HISTORIES, never_differ(20),
        (Line(f"{FENCE}.newest_cut", "floor_to(self.now() - self.skew, self.epoch)", "self.now() - self.skew"),),
    ),
    Bug(
        "ledger_too_soon", "the ledger is written before speed has passed the markers of the cut",
        Kind.SIMULATION, "speed has read all before the cut when a ledger is written (R13)",
        a_ledger_is_written_when_speed_has_read_up_to_the_cut,
        (Line("deploy.recomputing.ledgers:LedgerKeeper._is_read",
              'fence.wait(fence.mark(cut), positions, "speed", SPEED_TIMEOUT)', "fence.mark(cut)"),),
    ),
)  # fmt: skip
