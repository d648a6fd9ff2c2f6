"""The rules of the cut are exact, and each of them is needed."""

from datetime import timedelta
from random import Random

import pytest

from speed_layer.contributions import shapes_of
from tests.fast.model.adding import Given, added, added_by_arrow
from tests.fast.model.campaign import missed, run
from tests.fast.model.facts import BEGUN, CODES, Fact, contributions
from tests.fast.model.history import lived, steps_of
from tests.fast.model.rules import Rule
from tests.fast.model.story import shortest
from tests.fast.model.topic import Record
from views.core.cut import epoch_of

HISTORIES = 1000
ENOUGH = 1000


@pytest.mark.parametrize("part", range(4))
def test_a_thousand_histories_never_differ_from_the_naive_recompute(part: int) -> None:
    counted = run(range(part * HISTORIES // 4, (part + 1) * HISTORIES // 4))

    assert counted.different == (), f"python -m tests.fast.model --seed {counted.different[0]} --histories 1"
    assert counted.comparisons > counted.histories * 5  # mostly answered, seldom refused


@pytest.mark.nightly
@pytest.mark.parametrize("rule", Rule, ids=lambda rule: rule.name)
def test_removing_any_rule_of_the_cut_gives_a_wrong_answer(rule: Rule) -> None:
    found = missed(rule, first=0, most=ENOUGH, aimed=True)

    assert found.histories is not None


def test_one_seed_is_one_history() -> None:
    first, second = (lived(steps_of(7)) for _ in range(2))

    assert first == second
    assert first.steps > 0


def test_a_story_still_ends_with_a_difference_and_needs_each_of_its_steps() -> None:
    found = missed(Rule.OVERWRITTEN, first=0, most=ENOUGH)
    assert found.histories is not None

    steps = shortest(steps_of(found.histories - 1), Rule.OVERWRITTEN)

    assert lived(steps, Rule.OVERWRITTEN).difference
    without_one = [steps[:place] + steps[place + 1 :] for place in range(len(steps))]
    assert [fewer for fewer in without_one if lived(fewer, Rule.OVERWRITTEN).difference] == []


def test_the_model_adds_up_as_the_product_does() -> None:
    chance = Random(1)
    given: list[Given] = []
    for offset in range(200):
        received_at = BEGUN + timedelta(minutes=chance.randint(0, 300))
        store, amount = chance.choice("123"), chance.randint(1, 12)
        fact = Fact(f"e{offset}", store, received_at - timedelta(minutes=3), amount, chance.choice("ab"))
        record = Record(0, offset, received_at, fact, None, stepped=False)
        cells = [(view.name, key, states) for view, key, states in contributions(CODES[0], fact)]
        given.append((record, epoch_of(received_at, timedelta(hours=1)), cells))
    shapes = shapes_of(CODES[0].views)

    assert added(given, shapes) == added_by_arrow(given, shapes)
