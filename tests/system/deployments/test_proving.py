"""On a real broker what should lose loses, what should duplicate duplicates, and what should do neither does not."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lab.guarantees import clients, transactional_copy
from lab.guarantees.brokers import one_broker
from lab.guarantees.experiment import Ground, Size, registered
from lab.guarantees.results import Tally, Verdict
from lab.guarantees.suite import Asked, Proof, proof_of, prove
from master_dataset.kafka.consumer import Done
from master_dataset.kafka.consumer.key_queue import Lane
from tests.integration.conftest import settings_of

pytestmark = pytest.mark.nightly

QUICK = ("P01", "P03", "P06", "P07", "P08", "P09", "P10", "P11", "P14", "P15", "P16", "P17", "P21", "P22")
RECORDS, FAULTS = 100, 5


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Proof]:
    settings, _ = settings_of(tmp_path_factory.mktemp("prove") / "home")
    asked = Asked(QUICK, seed=7, size=Size(RECORDS, FAULTS))
    found = prove(settings, asked, lambda _done, _total, _what: None)
    assert not list((settings.home / "prove").rglob("*.pid.json"))
    assert not (settings.home / "prove" / "work").exists()
    return {proof.experiment.id: proof for proof in found}


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    home = tmp_path_factory.mktemp("harmed") / "home"
    settings, _ = settings_of(home)
    with one_broker(settings, home / "prove") as (direct, tapped, tap):
        yield Ground(direct, Path(home), 7, Size(RECORDS, FAULTS), tap, tapped)


def tallies(proof: Proof) -> list[Tally]:
    """Of each line; nothing if the experiment failed."""
    return [line.tally for line in proof.lines]


def test_every_experiment_comes_to_what_was_expected(proofs: Mapping[str, Proof]) -> None:
    assert {id_: (proof.verdict, proof.why) for id_, proof in proofs.items()} == dict.fromkeys(
        QUICK, (Verdict.AS_EXPECTED, "")
    )


def test_what_is_committed_before_it_is_worked_off_is_lost(proofs: Mapping[str, Proof]) -> None:
    assert tallies(proofs["P01"]) == [Tally(lost=FAULTS, duplicated=0, reordered=0)]


def test_auto_commit_both_loses_and_duplicates(proofs: Mapping[str, Proof]) -> None:
    behind_a_commit, before_a_commit = tallies(proofs["P03"])

    assert (behind_a_commit.lost > 0, behind_a_commit.duplicated) == (True, 0)
    assert (before_a_commit.lost, before_a_commit.duplicated > 0) == (0, True)


def test_lost_acknowledgements_duplicate_unless_the_producer_is_idempotent(proofs: Mapping[str, Proof]) -> None:
    assert tallies(proofs["P06"]) == [Tally(0, FAULTS, 0), Tally(0, 0, 0)]
    assert tallies(proofs["P07"]) == [Tally(0, 0, 0)]


def test_failed_means_unknown_without_retries(proofs: Mapping[str, Proof]) -> None:
    _, once = proofs["P06"].lines

    assert (once.counted["ok"], once.counted["log"]) == (RECORDS - FAULTS, RECORDS)


def test_a_restarted_sender_repeats_itself_and_identity_does_not(proofs: Mapping[str, Proof]) -> None:
    records, events = tallies(proofs["P08"])

    assert (records.duplicated, events) == (10, Tally(0, 0, 0))


def test_refused_requests_reorder_unless_sequence_numbers_forbid_it(proofs: Mapping[str, Proof]) -> None:
    awaited, one_in_flight, idempotent = tallies(proofs["P10"])

    assert tallies(proofs["P09"]) == [Tally(0, 0, FAULTS)]
    assert (awaited.reordered, one_in_flight.reordered > 0, idempotent.reordered) == (0, True, 0)


def test_without_acknowledgements_lost_requests_are_lost_records(proofs: Mapping[str, Proof]) -> None:
    without, with_one = proofs["P11"].lines

    assert (without.tally.lost, without.counted["ok"]) == (FAULTS, RECORDS)
    assert with_one.tally.lost == 0


def test_a_killed_copy_shows_each_record_once_to_who_reads_committed(proofs: Mapping[str, Proof]) -> None:
    committed, uncommitted = proofs["P14"].lines

    assert committed.tally == Tally(0, 0, 0)
    assert committed.counted["torn"] == 0
    assert uncommitted.tally.duplicated == 50  # five targets had the ten records of a transaction that died


def test_aborted_records_are_given_to_who_reads_uncommitted(proofs: Mapping[str, Proof]) -> None:
    assert [line.counted["phantom"] for line in proofs["P15"].lines] == [0, 100]


def test_a_zombie_with_an_id_of_its_own_writes_everything_twice(proofs: Mapping[str, Proof]) -> None:
    fenced, twice = proofs["P16"].lines

    assert (fenced.tally.duplicated, fenced.counted["fenced"]) == (0, 1)
    assert (twice.tally.duplicated, twice.counted["fenced"]) == (10, 0)


def test_a_late_commit_tears_the_next_transaction_of_a_producer_that_was_kept(proofs: Mapping[str, Proof]) -> None:
    kept, discarded = proofs["P17"].lines

    assert (kept.tally.duplicated, kept.counted["late end answered with"]) == (10, 0)
    assert (discarded.tally.duplicated, discarded.counted["late end answered with"]) == (0, 47)


def test_skipping_on_any_exception_loses_what_came_meanwhile(proofs: Mapping[str, Proof]) -> None:
    assert [line.tally.lost for line in proofs["P21"].lines] == [21, 0, 0]


def test_who_stands_still_holds_up_its_own_group_alone(proofs: Mapping[str, Proof]) -> None:
    together, apart, beside_silence = proofs["P22"].lines

    assert (together.counted["delivered meanwhile"], together.counted["tried meanwhile"] >= 50) == (1, True)
    for line in (apart, beside_silence):
        assert (line.counted["delivered meanwhile"], line.counted["delivered to the other meanwhile"]) == (RECORDS, 0)


def test_a_second_target_that_gets_records_twice_is_a_difference(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = transactional_copy._send  # noqa: SLF001 - what is harmed

    def twice(sender: Any, target: str, records: Sequence[Any]) -> None:
        send(sender, target, [*records, *records] if target.endswith("p17-c") else records)

    monkeypatch.setattr(transactional_copy, "_send", twice)

    assert proof_of(registered()["P17"], ground).verdict == Verdict.DIFFERENT


def as_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is to be in groups of its own is in one."""
    monkeypatch.setattr(Ground, "name", lambda self, name: f"{self.run}-{'p22' if name.startswith('p22-') else name}")


def past_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that goes on behind a record that may not pass yet."""
    judged = Lane._judged  # noqa: SLF001 - what is harmed

    async def done(self: Lane, batch: Sequence[Any]) -> Any:
        await judged(self, batch)
        return Done()

    monkeypatch.setattr(Lane, "_judged", done)


@pytest.mark.parametrize("harm", [as_one_group, past_failures])
def test_members_that_do_not_keep_their_work_apart_are_a_difference(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, harm: Callable[[pytest.MonkeyPatch], None]
) -> None:
    monkeypatch.setattr(clients, "QUIET_SECONDS", 5)
    harm(monkeypatch)

    assert proof_of(registered()["P22"], ground).verdict == Verdict.DIFFERENT
