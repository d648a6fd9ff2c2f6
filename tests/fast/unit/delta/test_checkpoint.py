"""What a micro-batch rests on is on the disk, and what a power cut has left empty does not keep Spark from starting."""

import os
from pathlib import Path

import pytest

from master_dataset.delta.checkpoint import (
    adopt,
    checkpoints_in,
    drop_incomplete,
    fsync_plan,
    furthest,
    read_ends,
    unfinished_mark,
    unfinished_marks,
)


def written(folder: Path, *names: str, text: str = "v1\n") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_the_plan_the_end_before_it_and_their_folders_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tmp_path / "archive" / "pos_transactions"
    written(checkpoint, "metadata", "offsets/6", "offsets/7", "commits/6", "sources/0/0")
    fsynced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda opened: fsynced.append(Path(f"/proc/self/fd/{opened}").readlink()))

    fsync_plan(str(checkpoint), 7)

    assert fsynced[:4] == [checkpoint / name for name in ("offsets/7", "commits/6", "metadata", "sources/0/0")]
    folders = {checkpoint / name for name in ("offsets", "commits", "sources", "sources/0")}
    assert set(fsynced[4:]) == {*folders, checkpoint, checkpoint.parent}


def test_what_is_empty_is_removed_with_its_checksum(tmp_path: Path) -> None:
    written(tmp_path, "metadata", "offsets/6", "offsets/7", "commits/6", ".metadata.crc", "offsets/.7.crc")
    written(tmp_path, "offsets/8", "commits/7", "offsets/.8.crc", "sources/0/0", text="")

    drop_incomplete(str(tmp_path))

    assert names(tmp_path) == {"metadata", "offsets/6", "offsets/7", "commits/6", ".metadata.crc", "offsets/.7.crc"}


def test_without_its_beginning_nothing_had_begun(tmp_path: Path) -> None:
    checkpoint = tmp_path / "pos_transactions"
    written(checkpoint, "metadata", text="")
    written(checkpoint, "offsets/0", "sources/0/0")

    drop_incomplete(str(checkpoint))

    assert not checkpoint.exists()


@pytest.mark.parametrize(
    ("files", "mark"),
    [
        (("offsets/6", "offsets/7", "commits/6"), "query-a 7"),
        (("offsets/6", "offsets/7", "commits/6", "commits/7"), ""),
        (("offsets/0",), "query-a 0"),
        ((), ""),
    ],
)
def test_the_micro_batch_that_comes_again_is_the_planned_one_that_is_not_done(
    tmp_path: Path, files: tuple[str, ...], mark: str
) -> None:
    written(tmp_path, "metadata", text='{"id":"query-a"}')
    written(tmp_path, *files)

    assert unfinished_mark(str(tmp_path)) == mark


def test_nothing_is_touched_where_nothing_is_empty_or_the_checkpoint_lies_elsewhere(tmp_path: Path) -> None:
    written(tmp_path, "metadata", "offsets/6", "offsets/.7.a.tmp")

    drop_incomplete(str(tmp_path))
    drop_incomplete("s3://bucket/archive/pos_transactions")
    fsync_plan("s3://bucket/archive/pos_transactions", 7)

    assert names(tmp_path) == {"metadata", "offsets/6", "offsets/.7.a.tmp"}


def planned(folder: Path, *plans: int, ends: int, done: int = -1) -> None:
    """A checkpoint with these plans; `ends`: end offset of the last one. `done`: the last micro-batch that ended."""
    for number in plans:
        end = ends - 10 * (plans[-1] - number)
        written(folder, f"offsets/{number}", f"offsets/.{number}.crc", text=f'v1\n{{}}\n{{"sales":{{"0":{end}}}}}')
    written(folder, *(f"commits/{number}" for number in plans if number <= done), "sources/0/0")
    written(folder, "metadata", text='{"id":"query-a"}')


def test_a_process_goes_on_with_a_copy_of_its_own(tmp_path: Path) -> None:
    planned(tmp_path / "first", 6, 7, ends=70, done=6)

    adopted = Path(adopt(str(tmp_path), furthest(str(tmp_path))))

    assert adopted.parent == tmp_path
    assert names(adopted) == {"metadata", "offsets/6", "offsets/7", "commits/6", "sources/0/0"}
    assert (adopted / "offsets" / "7").read_text() == (tmp_path / "first" / "offsets" / "7").read_text()
    assert unfinished_mark(str(adopted)) == "query-a 7"


def test_one_that_ended_before_it_had_asked_kafka_for_its_first_offsets_is_adopted_too(tmp_path: Path) -> None:
    written(tmp_path / "first", "metadata", text='{"id":"query-a"}')
    (tmp_path / "first" / "sources" / "0").mkdir(parents=True)

    adopted = Path(adopt(str(tmp_path), furthest(str(tmp_path))))

    assert names(adopted) == {"metadata"}


def test_the_only_one_of_a_former_release_is_moved_so_that_a_return_to_it_does_not_repeat_its_plans(
    tmp_path: Path,
) -> None:
    planned(tmp_path, 6, 7, ends=70, done=6)

    adopted = adopt(str(tmp_path), furthest(str(tmp_path)))

    assert checkpoints_in(str(tmp_path)) == [adopted]
    assert {path.name for path in tmp_path.iterdir()} == {Path(adopted).name}
    assert unfinished_mark(adopted) == "query-a 7"


def test_the_furthest_one_is_adopted_and_those_far_behind_are_removed(tmp_path: Path) -> None:
    planned(tmp_path, 1, 2, ends=20)  # where there was only one
    planned(tmp_path / "older", 2, 3, ends=40)
    planned(tmp_path / "shorter", 4, 5, ends=50)
    planned(tmp_path / "newest", 4, 5, ends=55)
    written(tmp_path / "unfinished", "offsets/3", "commits/2")

    adopted = adopt(str(tmp_path), furthest(str(tmp_path)))

    assert furthest(str(tmp_path)) in {adopted, str(tmp_path / "newest")}
    assert {path.name for path in tmp_path.iterdir()} == {Path(adopted).name, "newest", "shorter"}
    assert read_ends(adopted, 5) == {"sales": {0: 55}}


def test_the_one_whose_plan_was_claimed_is_preferred_to_the_furthest(tmp_path: Path) -> None:
    planned(tmp_path / "claimed", 4, 5, ends=50)
    planned(tmp_path / "refused", 4, 5, 6, ends=77)

    assert furthest(str(tmp_path), (5, {"sales": {0: 50}})) == str(tmp_path / "claimed")
    assert furthest(str(tmp_path), (5, {"sales": {0: 51}})) == str(tmp_path / "refused")


def test_a_copy_that_was_not_finished_is_no_checkpoint(tmp_path: Path) -> None:
    written(tmp_path / "unfinished", "offsets/9", "commits/8")

    assert checkpoints_in(str(tmp_path)) == []
    assert furthest(str(tmp_path)) is None
    assert Path(adopt(str(tmp_path), None)).parent == tmp_path


def test_of_two_with_the_same_plan_the_one_that_ended_it_goes_further(tmp_path: Path) -> None:
    planned(tmp_path / "killed", 4, 5, ends=55)
    planned(tmp_path / "ended", 4, 5, ends=50, done=5)

    assert furthest(str(tmp_path)) == str(tmp_path / "ended")


@pytest.mark.parametrize(
    ("plans", "marks"),
    [
        ({"a": (5, -1), "b": (6, 5)}, {"query-a 6"}),  # a plan that another process has ended
        ({"a": (6, 5), "b": (6, 6)}, set()),
        ({"a": (5, 4), "b": (6, 4)}, {"query-a 5", "query-a 6"}),
        ({"a": (3, 2), "b": (6, 5)}, {"query-a 6"}),  # long ago
        ({}, set()),
    ],
)
def test_only_what_was_planned_last_and_ended_nowhere_may_be_written_in_part(
    tmp_path: Path, plans: dict[str, tuple[int, int]], marks: set[str]
) -> None:
    for name, (plan, done) in plans.items():
        planned(tmp_path / name, *range(2, plan + 1), ends=10 * plan, done=done)

    assert unfinished_marks(str(tmp_path)) == marks
