"""When a generation may take over."""

from views.control.generation import reached


def test_a_generation_has_caught_up_when_no_partition_is_short_of_its_target() -> None:
    targets = {"t": {0: 10, 1: 0}}

    assert reached({"t": {0: 10}}, targets)  # nothing was ever in partition 1
    assert not reached({"t": {0: 9, 1: 5}}, targets)
    assert not reached({}, targets)
