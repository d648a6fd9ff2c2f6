"""On a real broker what should lose loses, what should duplicate duplicates, and what should do neither does not."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lab.guarantees import clients, transactional_copy
from lab.guarantees.brokers import one_broker
from lab.guarantees.experiment import ExperimentSetup, Size, registered
from lab.guarantees.experiments import rebalance_storm
from lab.guarantees.results import Counts, Verdict
from lab.guarantees.suite import ExperimentResult, ExperimentSelection, run_experiment, run_experiments
from master_dataset.kafka.consumer import Done
from master_dataset.kafka.consumer.key_queue import KeyQueue
from tests.integration.conftest import settings_of

pytestmark = pytest.mark.nightly

QUICK = ("P01", "P03", "P06", "P07", "P08", "P09", "P10", "P11", "P14", "P15", "P16", "P17", "P21", "P22", "P25", "P26")
RECORDS, FAULTS = 100, 5


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ExperimentResult]:
    settings, _ = settings_of(tmp_path_factory.mktemp("prove") / "home")
    selection = ExperimentSelection(QUICK, seed=7, size=Size(RECORDS, FAULTS))
    found = run_experiments(settings, selection, lambda _done, _total, _what: None)
    assert not list((settings.home / "prove").rglob("*.pid.json"))
    assert not (settings.home / "prove" / "work").exists()
    return {result.experiment.id: result for result in found}


@pytest.fixture(scope="module")
def unclean(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResult:
    settings, _ = settings_of(tmp_path_factory.mktemp("unclean") / "home")
    [found] = run_experiments(settings, ExperimentSelection(("P24",)), lambda _done, _total, _what: None)
    assert not list((settings.home / "prove").rglob("*.pid.json"))
    return found


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExperimentSetup]:
    home = tmp_path_factory.mktemp("harmed") / "home"
    settings, _ = settings_of(home)
    with one_broker(settings, home / "prove") as (direct, proxied, proxy):
        yield ExperimentSetup(direct, Path(home), 7, Size(RECORDS, FAULTS), proxy, proxied)


def tallies(result: ExperimentResult) -> list[Counts]:
    """Of each line; nothing if the experiment failed."""
    return [line.counts for line in result.lines]


def test_every_experiment_comes_to_what_was_expected(results: Mapping[str, ExperimentResult]) -> None:
    assert {id_: (result.verdict, result.why) for id_, result in results.items()} == dict.fromkeys(
        QUICK, (Verdict.AS_EXPECTED, "")
    )


def test_what_is_committed_before_it_is_worked_off_is_lost(results: Mapping[str, ExperimentResult]) -> None:
    assert tallies(results["P01"]) == [Counts(lost=FAULTS, duplicated=0, reordered=0)]


def test_auto_commit_both_loses_and_duplicates(results: Mapping[str, ExperimentResult]) -> None:
    behind_a_commit, before_a_commit = tallies(results["P03"])

    assert (behind_a_commit.lost > 0, behind_a_commit.duplicated) == (True, 0)
    assert (before_a_commit.lost, before_a_commit.duplicated > 0) == (0, True)


def test_lost_acknowledgements_duplicate_unless_the_producer_is_idempotent(
    results: Mapping[str, ExperimentResult],
) -> None:
    assert tallies(results["P06"]) == [Counts(0, FAULTS, 0), Counts(0, 0, 0)]
    assert tallies(results["P07"]) == [Counts(0, 0, 0)]


def test_failed_means_unknown_without_retries(results: Mapping[str, ExperimentResult]) -> None:
    _, once = results["P06"].lines

    assert (once.counted["ok"], once.counted["log"]) == (RECORDS - FAULTS, RECORDS)


def test_a_restarted_sender_repeats_itself_and_identity_does_not(results: Mapping[str, ExperimentResult]) -> None:
    records, events = tallies(results["P08"])

    assert (records.duplicated, events) == (10, Counts(0, 0, 0))


def test_refused_requests_reorder_unless_sequence_numbers_forbid_it(results: Mapping[str, ExperimentResult]) -> None:
    awaited, one_in_flight, idempotent = tallies(results["P10"])

    assert tallies(results["P09"]) == [Counts(0, 0, FAULTS)]
    assert (awaited.reordered, one_in_flight.reordered > 0, idempotent.reordered) == (0, True, 0)


def test_without_acknowledgements_lost_requests_are_lost_records(results: Mapping[str, ExperimentResult]) -> None:
    without, with_one = results["P11"].lines

    assert (without.counts.lost, without.counted["ok"]) == (FAULTS, RECORDS)
    assert with_one.counts.lost == 0


def test_killed_transactional_copy_shows_each_record_once_to_read_committed(
    results: Mapping[str, ExperimentResult],
) -> None:
    committed, uncommitted = results["P14"].lines

    assert committed.counts == Counts(0, 0, 0)
    assert committed.counted["partial"] == 0
    assert uncommitted.counts.duplicated == 50  # five targets had the ten records of a transaction that died


def test_aborted_records_are_given_to_who_reads_uncommitted(results: Mapping[str, ExperimentResult]) -> None:
    assert [line.counted["phantom"] for line in results["P15"].lines] == [0, 100]


def test_a_zombie_with_an_id_of_its_own_writes_everything_twice(results: Mapping[str, ExperimentResult]) -> None:
    fenced, twice = results["P16"].lines

    assert (fenced.counts.duplicated, fenced.counted["fenced"]) == (0, 1)
    assert (twice.counts.duplicated, twice.counted["fenced"]) == (10, 0)


def test_a_late_commit_ends_the_next_transaction_of_a_producer_that_was_kept(
    results: Mapping[str, ExperimentResult],
) -> None:
    kept, discarded = results["P17"].lines

    assert (kept.counts.duplicated, kept.counted["late end answered with"]) == (10, 0)
    assert (discarded.counts.duplicated, discarded.counted["late end answered with"]) == (0, 47)


def test_skipping_on_any_exception_loses_what_came_meanwhile(results: Mapping[str, ExperimentResult]) -> None:
    assert [line.counts.lost for line in results["P21"].lines] == [21, 0, 0]


def test_stalled_consumer_delays_only_its_own_group(results: Mapping[str, ExperimentResult]) -> None:
    together, apart, beside_silence = results["P22"].lines

    assert (together.counted["delivered meanwhile"], together.counted["tried meanwhile"] >= 50) == (1, True)
    for line in (apart, beside_silence):
        assert (line.counted["delivered meanwhile"], line.counted["delivered to the other meanwhile"]) == (RECORDS, 0)


def test_the_first_broker_back_loses_what_only_the_dead_leader_had(unclean: ExperimentResult) -> None:
    assert (unclean.verdict, unclean.why) == (Verdict.AS_EXPECTED, "")
    lossy, default = unclean.lines

    assert (lossy.counts, lossy.counted["ok"]) == (Counts(lost=100, duplicated=0, reordered=0), 200)
    assert (default.counts, default.counted["without a leader meanwhile"]) == (Counts(0, 0, 0), 1)


def test_a_record_alone_pays_for_its_batch_and_compresses_to_nothing_less(
    results: Mapping[str, ExperimentResult],
) -> None:
    alone, ten, hundred, thousand, alone_lz4, thousand_lz4 = (
        line.counted["bytes per record"] for line in results["P25"].lines
    )

    assert alone == 170  # 100 of the value, 61 of the batch, 9 of the record
    assert alone_lz4 >= alone
    assert alone > ten > hundred
    assert thousand < 115
    assert thousand_lz4 < 50


def test_a_rebalance_storm_repeats_what_was_not_committed_when_partitions_were_taken(
    results: Mapping[str, ExperimentResult],
) -> None:
    quiet, careless, careful, cooperative = results["P26"].lines

    assert (quiet.counts.duplicated, quiet.counted["taken away"]) == (0, 0)
    assert (careless.counts.lost, careless.counts.duplicated > 0) == (0, True)
    assert [(line.counts.lost, line.counts.duplicated) for line in (careful, cooperative)] == [(0, 0), (0, 0)]
    assert cooperative.counted["taken away"] < careful.counted["taken away"]


def test_a_member_that_commits_nothing_when_partitions_are_taken_is_a_difference(
    setup: ExperimentSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebalance_storm.Member, "_commit", lambda *_: None)

    assert run_experiment(registered()["P26"], setup).verdict == Verdict.DIFFERENT


def test_a_second_target_that_gets_records_twice_is_a_difference(
    setup: ExperimentSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = transactional_copy._send  # noqa: SLF001 - what is harmed

    def twice(sender: Any, target: str, records: Sequence[Any]) -> None:
        send(sender, target, [*records, *records] if target.endswith("p17-c") else records)

    monkeypatch.setattr(transactional_copy, "_send", twice)

    assert run_experiment(registered()["P17"], setup).verdict == Verdict.DIFFERENT


def as_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is to be in groups of its own is in one."""
    monkeypatch.setattr(
        ExperimentSetup, "name", lambda self, name: f"{self.run}-{'p22' if name.startswith('p22-') else name}"
    )


def past_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that goes on behind a record that may not pass yet."""
    handle = KeyQueue._handle  # noqa: SLF001 - what is harmed

    async def done(self: KeyQueue, batch: Sequence[Any]) -> Any:
        await handle(self, batch)
        return Done()

    monkeypatch.setattr(KeyQueue, "_handle", done)


@pytest.mark.parametrize("change", [as_one_group, past_failures])
def test_missing_isolation_between_members_fails_the_experiment(
    setup: ExperimentSetup, monkeypatch: pytest.MonkeyPatch, change: Callable[[pytest.MonkeyPatch], None]
) -> None:
    monkeypatch.setattr(clients, "QUIET_SECONDS", 5)
    change(monkeypatch)

    assert run_experiment(registered()["P22"], setup).verdict == Verdict.DIFFERENT
