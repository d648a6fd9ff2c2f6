"""Files and functions stay small; the cure is a new noun."""

import re
from statistics import median

from tests.house.tree import ROOT, Function, functions, named, product, text

MEDIAN_LINES, MOST_LINES, MOST_FUNCTION_LINES, MOST_PARAMETERS = 100, 250, 40, 5
EXPLAINED = re.compile(r"noqa: [\w, ]*PLR0913[\w, ]* - \w")
NAMES_THAT_SAY_NOTHING = {"util", "utils", "helper", "helpers", "common", "manager", "misc"}


def lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def parameters(function: Function) -> int:
    asked = function.args
    return len([each for each in (*asked.posonlyargs, *asked.args) if each.arg not in {"self", "cls"}])


def test_the_median_file_is_shorter_than_a_hundred_lines() -> None:
    assert median(len(text(path).splitlines()) for path in product()) < MEDIAN_LINES


def test_no_file_is_longer_than_two_hundred_and_fifty_lines() -> None:
    found = {named(path): len(text(path).splitlines()) for path in product()}

    assert {name: count for name, count in found.items() if count > MOST_LINES} == {}


def test_no_function_is_longer_than_forty_lines() -> None:
    found = {f"{named(path)}:{each.name}": lines(each) for path in product() for each in functions(path)}

    assert {name: count for name, count in found.items() if count > MOST_FUNCTION_LINES} == {}


def test_a_function_with_more_than_five_parameters_explains_itself() -> None:
    found = []
    for path in product():
        written = text(path).splitlines()
        for each in functions(path):
            signature = "\n".join(written[each.lineno - 1 : each.body[0].lineno])
            if parameters(each) > MOST_PARAMETERS and not EXPLAINED.search(signature):
                found.append(f"{named(path)}:{each.name}")

    assert found == []


def test_no_file_has_a_name_that_says_nothing() -> None:
    names = {path: {*path.relative_to(ROOT).with_suffix("").parts} for path in product()}

    assert [named(path) for path, words in names.items() if words & NAMES_THAT_SAY_NOTHING] == []


def test_every_file_says_first_what_it_is_for() -> None:
    assert [named(path) for path in product() if not text(path).lstrip().startswith(('"""', 'r"""'))] == []
