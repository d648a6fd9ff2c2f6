"""`make test` fails if one of its parts fails, however that part ends."""

import os
import signal
import subprocess
from types import SimpleNamespace

import pytest

from tests import beside


@pytest.mark.parametrize(
    ("codes", "expected"), [((0, 0), 0), ((0, 1), 1), ((2, 0), 1), ((-9, 0), 1), ((0, -11), 1)], ids=str
)
def test_a_part_that_fails_or_is_killed_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, codes: tuple[int, int], expected: int
) -> None:
    ended = iter(codes)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=next(ended)))
    monkeypatch.setattr(os, "setsid", lambda: None)
    monkeypatch.setattr(beside, "lower_priority", lambda _: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    assert beside.main() == expected
    assert list(ended) == []  # a failure does not skip the other part
