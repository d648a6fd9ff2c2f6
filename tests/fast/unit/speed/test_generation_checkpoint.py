"""A speed checkpoint that was removed, or half of it, does not keep speed from starting: another generation begins."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deploy.services.speed import can_resume
from deploy.settings import Settings
from views.control.generation import Generation

WHOLE = ("metadata", "offsets/0")


@pytest.mark.parametrize("left", [WHOLE, ("offsets/0",), ("metadata",), ()])
def test_a_generation_goes_on_with_a_whole_checkpoint_only(tmp_path: Path, left: tuple[str, ...]) -> None:
    settings = Settings(home=tmp_path)
    agreed = settings.definitions
    generation = Generation(7, datetime.now(UTC), agreed, {})
    generations = cast("Any", SimpleNamespace(claims=SimpleNamespace(is_replaced=lambda _: False)))
    for name in left:
        (tmp_path / "7" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "7" / name).write_text("v1\n")

    assert can_resume(generation, generations, settings, str(tmp_path)) is (left == WHOLE)


@pytest.mark.parametrize(("incomplete", "goes_on"), [("metadata", False), ("offsets/1", True), ("commits/0", True)])
def test_what_a_power_cut_has_left_empty_is_as_if_it_had_never_been(
    tmp_path: Path, incomplete: str, *, goes_on: bool
) -> None:
    settings = Settings(home=tmp_path)
    generation = Generation(7, datetime.now(UTC), settings.definitions, {})
    generations = cast("Any", SimpleNamespace(claims=SimpleNamespace(is_replaced=lambda _: False)))
    for name in (*WHOLE, "commits/0", "offsets/1"):
        (tmp_path / "7" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "7" / name).write_text("" if name == incomplete else "v1\n")

    assert can_resume(generation, generations, settings, str(tmp_path)) is goes_on
    assert not (tmp_path / "7" / incomplete).exists()
