"""Images are known by their content, and zones are rejected by the name of the field that is wrong."""

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from master_dataset.errors import BadFloorPlanError
from master_dataset.registry.floor_plans import Corner, DrawnZone, Rectangle
from master_dataset.registry.floor_plans_file import (
    MOST_BYTES,
    ZonesEntry,
    load_image,
    load_zones,
    read_image,
    read_lines,
    write_lines,
)
from tests.support.floor_plans import png

JPEG = (
    bytes.fromhex("ffd8ffe000104a46494600010100000100010000") + b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", 300, 400)
)
WEBP = b"RIFF" + struct.pack("<I", 26) + b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + b"\x8f\x01\x00\x2b\x01\x00"


def wrong_image(content: bytes) -> str:
    with pytest.raises(BadFloorPlanError) as raised:
        read_image(content)
    assert raised.value.field == "image"
    return f"{raised.value.message} {raised.value.do}"


def wrong_lines(text: str, *known: str) -> tuple[str, str]:
    with pytest.raises(BadFloorPlanError) as raised:
        read_lines(text, known)
    return raised.value.field, raised.value.message


@pytest.mark.parametrize(
    ("content", "kind", "size"),
    [
        (png(80, 60), "image/png", (80, 60)),
        (JPEG + bytes(20), "image/jpeg", (400, 300)),
        (WEBP, "image/webp", (400, 300)),
    ],
)
def test_an_image_is_known_by_its_content(content: bytes, kind: str, size: tuple[int, int]) -> None:
    image = read_image(content)

    assert (image.media_type, (image.width, image.height), image.content) == (kind, size, content)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b'<?xml version="1.0"?>\n<SVG onload="alert(1)"/>', "SVG, which can contain scripts"),
        (b"GIF89a" + bytes(40), "no PNG, JPEG or WebP"),
        (b"%PDF-1.7", "no PNG, JPEG or WebP"),
        (b"\x89PNG\r\n\x1a\n", "its header has no size"),
        (b"\xff\xd8\xff\xe0", "its header has no size"),
        (b"RIFF\x00\x00\x00\x00WEBPVP9 ", "its header has no size"),
        (png(40, 60), "40 by 60 pixels"),
        (png()[:16] + struct.pack(">II", 9_000, 9_000) + png()[24:], "25,000,000"),
        (png()[:16] + struct.pack(">II", 2**31, 60) + png()[24:], "50 to 10,000"),
        (png() + bytes(MOST_BYTES), "2,000,000"),
    ],
)
def test_what_is_no_usable_image_is_rejected(content: bytes, says: str) -> None:
    assert says in wrong_image(content)


@given(content=st.binary(max_size=200), kind=st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF....WEBP"]))
def test_no_bytes_break_the_reader(content: bytes, kind: bytes) -> None:
    with suppress(BadFloorPlanError):
        image = read_image(kind + content)
        assert image.width * image.height <= 25_000_000


def test_a_line_is_a_rectangle_or_corners_and_a_name_may_have_blanks() -> None:
    zones = read_lines("shoes 10 20 30 25\n\n  fitting rooms 10,20 40,20 40%,45.5 \n", ("shoes", "fitting rooms"))

    assert zones[0].rectangle == Rectangle(0.1, 0.2, 0.3, 0.25)
    assert zones[1] == DrawnZone("fitting rooms", (Corner(0.1, 0.2), Corner(0.4, 0.2), Corner(0.4, 0.455)))
    assert zones[1].rectangle is None
    assert write_lines(zones) == "shoes 10 20 30 25\nfitting rooms 10,20 40,20 40,45.5"


@given(
    st.lists(
        st.tuples(*(st.integers(0, 499_999) for _ in range(2)), *(st.integers(2_000, 500_000) for _ in range(2))),
        min_size=1,
        max_size=5,
    )
)
def test_rectangles_survive_being_written(drawn: list[tuple[int, int, int, int]]) -> None:
    shapes = [Rectangle(*(number / 10**6 for number in each)) for each in drawn]
    zones = tuple(DrawnZone(f"zone {place}", shape.corners) for place, shape in enumerate(shapes))

    assert read_lines(write_lines(zones), ()) == zones


@pytest.mark.parametrize(
    ("text", "field", "says"),
    [
        ("shoes", "line 1", "must be `zone x y width height`"),
        ("10 20 30 25", "line 1", "must be `zone x y width height`"),
        ("hats 1 1 5 5\nshoes 10 20 x 25", "line 2", "`x` where a number from 0 to 100"),
        ("shoes 10 20 nan 25", "line 1", "`nan` where a number from 0 to 100"),
        ("shoes 10 20 -5 25", "line 1", "`-5` where a number from 0 to 100"),
        ("shoes 90 20 30 25", "line 1", "beyond the edge"),
        ("shoes 10 20 0 25", "line 1", "has no area"),
        ("shoes 10,20 40,20", "line 1", "3 to 64 corners"),
        ("shoes 10,20 40,20 40,20,1", "line 1", "no `x,y`"),
        ("shoes 1 1 5 5\nshoes 7 7 5 5", "line 2", "is there twice: `shoes`"),
        (f"{'ü' * 33} 1 1 5 5", "line 1", "64 bytes"),
        ("a\u200bb 1 1 5 5", "line 1", "that can be seen"),
        ("\n".join(f"z{number} 1 1 5 5" for number in range(201)), "zones", "more than 200 lines"),
    ],
)
def test_a_wrong_line_is_named(text: str, field: str, says: str) -> None:
    found, message = wrong_lines(text)

    assert found == field
    assert says in message


def test_only_registered_zones_are_drawn_if_there_are_any() -> None:
    assert wrong_lines("shoos 1 1 5 5", "shoes") == ("line 1", "`line 1` is no zone of the store: `shoos`.")
    assert read_lines("shoos 1 1 5 5", ())[0].zone == "shoos"


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"zone": "shoes"}, "zones[0]"),
        ({"zone": "shoes", "rectangle": {"x": 0.9, "y": 0, "width": 0.2, "height": 1}}, "zones[0].rectangle"),
        ({"zone": "shoos", "rectangle": {"x": 0, "y": 0, "width": 1, "height": 1}}, "zones[0].zone"),
        ({"zone": "shoes", "polygon": [[0, 0], [1, 1], [0.5, 0.5]]}, "zones[0]"),
    ],
)
def test_a_wrong_entry_is_named(entry: dict[str, object], field: str) -> None:
    with pytest.raises(BadFloorPlanError) as raised:
        ZonesEntry.model_validate({"zones": [entry]}).drawn(("shoes",))

    assert raised.value.field == field


def test_files_are_read_and_their_fields_named(tmp_path: Path) -> None:
    image, zones = tmp_path / "plan.svg", tmp_path / "zones.yaml"  # the name says nothing
    image.write_bytes(png())
    zones.write_text("zones:\n  - {zone: 1, rectangle: {x: 0.1, y: 0.2, width: 0.3, height: 0.25}}\n")

    assert load_image(image).media_type == "image/png"
    assert load_zones(zones, ("1",))[0].zone == "1"
    for text, field in (
        ("zones: [{zone: shoes, rectangle: {x: a, y: 0, width: 1, height: 1}}]", "zones[0].rectangle.x"),
        ("zones: [{zone: shoes, colour: red}]", "zones[0].colour"),
        ("shoes", "zones"),
        ("zones: [", "zones"),
    ):
        zones.write_text(text)
        with pytest.raises(BadFloorPlanError) as raised:
            load_zones(zones, ())
        assert raised.value.field == field
    with pytest.raises(BadFloorPlanError, match="cannot be read"):
        load_image(tmp_path / "none.png")
