"""A sale reaches us long after it happened: counted once, before and after the next publication."""

from tests.support import World, receipt
from tests.support.world_api import Asking, Body

WINDOW = {"store": "1", "grain": "15m"}


def answered(asking: Asking, start: str, end: str) -> tuple[object, object, object]:
    """Value, final and waiting of one window."""
    body: Body = asking.body("/v1/metrics/net_sales", **WINDOW, from_=start, to=end)
    [point] = body["series"][0]["points"]
    return point["value"], point["final"], body["as_of"]["waiting_for_batch"]


def test_a_late_sale_is_counted_once_before_and_after_the_next_publication() -> None:
    world = World()
    asking = Asking(world)
    window = ("2026-11-20T11:00:00Z", "2026-11-20T11:15:00Z")
    world.rebuild(cut="2026-11-21T09:00:00Z")

    world.receive(receipt("2026-11-20T11:07:00Z", minor=218), received_at="2026-11-21T09:00:00Z")  # exactly at the cut
    before = answered(asking, *window)
    world.rebuild(cut="2026-11-21T10:00:00Z")
    after = answered(asking, *window)

    assert before == (2.18, False, 0)
    assert after == (2.18, True, 0)


def test_a_sale_four_days_late_is_waited_for_and_then_counted() -> None:
    world = World()
    asking = Asking(world)
    window = ("2026-11-17T10:00:00Z", "2026-11-17T10:15:00Z")
    world.rebuild(cut="2026-11-21T09:00:00Z")

    world.receive(receipt("2026-11-17T10:07:00Z", minor=218), received_at="2026-11-21T09:30:00Z")
    before = answered(asking, *window)
    world.rebuild(cut="2026-11-21T10:00:00Z")
    after = answered(asking, *window)

    assert before == (0, False, 1)
    assert after == (2.18, True, 0)


def test_a_duplicate_on_the_other_side_of_the_cut_is_not_counted_again() -> None:
    world = World()
    asking = Asking(world)
    window = ("2026-11-21T08:45:00Z", "2026-11-21T09:00:00Z")
    sale = receipt("2026-11-21T08:58:00Z", minor=218)

    world.receive(sale, received_at="2026-11-21T08:58:01Z")
    world.receive(sale, received_at="2026-11-21T09:03:00Z")
    unpublished = answered(asking, *window)
    world.rebuild(cut="2026-11-21T09:00:00Z")
    published = answered(asking, *window)

    assert unpublished == (2.18, False, 0)
    assert published == (2.18, True, 0)


def test_numbers_do_not_move_while_their_colour_changes() -> None:
    world = World()
    asking = Asking(world)
    for minute in range(0, 60, 7):
        world.receive(
            receipt(f"2026-11-21T09:{minute:02}:00Z", minor=100, number=minute), f"2026-11-21T09:{minute:02}:01Z"
        )

    answers = []
    for cut in ("2026-11-21T09:00:00Z", "2026-11-21T09:20:00Z", "2026-11-21T09:40:00Z", "2026-11-21T10:00:00Z"):
        world.rebuild(cut)
        answers.append(
            asking.body("/v1/metrics/net_sales", **WINDOW, from_="2026-11-21T09:00Z", to="2026-11-21T10:00Z")
        )

    series = [answer["series"][0]["points"] for answer in answers]
    assert {tuple(point["value"] for point in points) for points in series} == {(3, 2, 2, 2)}
    assert [[point["final"] for point in points] for points in series] == [
        [False, False, False, False],
        [True, False, False, False],
        [True, True, False, False],
        [True, True, True, True],
    ]
