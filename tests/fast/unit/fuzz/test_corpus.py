"""The corpus of every fuzz target: what has broken something once, or could, is accepted or refused as promised."""

import time
from typing import TYPE_CHECKING

import pytest

from tests.system.fuzz.targets import TARGETS, target_named
from tests.system.fuzz.worker import LIMIT_SECONDS

if TYPE_CHECKING:
    from tests.system.fuzz.target import Target

each_target = pytest.mark.parametrize("name", TARGETS)


@each_target
def test_every_input_of_the_corpus_is_accepted_or_refused_as_promised(name: str) -> None:
    with target_named(name) as target:
        for path in target.corpus():
            began = time.process_time()
            try:
                target.check(path.read_bytes())
            except Exception as error:  # noqa: BLE001 - whatever is raised, the input has to be named
                pytest.fail(f"{path}: {error!r}")
            assert time.process_time() - began < LIMIT_SECONDS, path


@each_target
def test_every_target_has_a_corpus_of_files_named_by_their_content(name: str) -> None:
    target: Target = target_named(name)
    found = target.corpus()

    assert len(found) >= 5
    assert all(target.path_of(path.read_bytes()) == path for path in found)
