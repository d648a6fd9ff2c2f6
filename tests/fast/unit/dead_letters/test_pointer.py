"""A field by its JSON pointer: found in the text, and set with all else as it was written."""

import pytest

from master_dataset.dead_letters.patch import pointer_span, set_pointer
from master_dataset.parsing.results import InvalidRecordError

VALUE = b'{"a": 1.10, "b": [ {"p": 1e2}, 2 ], "u":"\\u00e9 {", "deep":{"x":[1,2]}, "a/b~c": 0}'


@pytest.mark.parametrize(
    ("pointer", "set_to", "expected"),
    [
        ("/a", b"2.50", b'{"a":2.50,"b":[ {"p": 1e2}, 2 ],"u":"\\u00e9 {","deep":{"x":[1,2]},"a/b~c":0}'),
        ("/b/0/p", b'"z"', b'{"a":1.10,"b":[{"p":"z"},2],"u":"\\u00e9 {","deep":{"x":[1,2]},"a/b~c":0}'),
        ("/deep/x/1", b"null", b'{"a":1.10,"b":[ {"p": 1e2}, 2 ],"u":"\\u00e9 {","deep":{"x":[1,null]},"a/b~c":0}'),
        ("/a~1b~0c", b"7", b'{"a":1.10,"b":[ {"p": 1e2}, 2 ],"u":"\\u00e9 {","deep":{"x":[1,2]},"a/b~c":7}'),
        ("/new", b"3", b'{"a":1.10,"b":[ {"p": 1e2}, 2 ],"u":"\\u00e9 {","deep":{"x":[1,2]},"a/b~c":0,"new":3}'),
    ],
)
def test_a_field_is_set_and_every_other_digit_stays_as_it_was(pointer: str, set_to: bytes, expected: bytes) -> None:
    assert set_pointer(VALUE, pointer, set_to) == expected


@pytest.mark.parametrize(
    "pointer", ["/b/2", "/b/-", "/b/\u0660", "/b/99999999999999999999", "/none/x", "/a/x", "/u/0", "a"]
)
def test_what_is_no_place_in_the_record_cannot_be_set(pointer: str) -> None:
    with pytest.raises(InvalidRecordError) as refused:
        set_pointer(VALUE, pointer, b"1")

    assert refused.value.reason == "missing_field"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"a":1,"a":2}', "duplicate_json_key"),
        (b"[1]", "not_json"),
        (b"{", "not_json"),
        (b"", "empty_value"),
        (b'{"a":"\xff"}', "not_utf8"),
        (b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", "too_deep"),
    ],
)
def test_a_field_is_set_only_in_one_readable_object(value: bytes, reason: str) -> None:
    with pytest.raises(InvalidRecordError) as refused:
        set_pointer(value, "/b", b"1")

    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("/a", "1.10"),
        ("/b", '[ {"p": 1e2}, 2 ]'),
        ("/b/0/p", "1e2"),
        ("/b/1", "2"),
        ("/deep/x/1", "2"),
        ("/a~1b~0c", "0"),
        *[(each, None) for each in ("", "/b/2", "/none", "/a/x", "a", "/u/0")],
    ],
)
def test_the_value_of_a_field_is_found_in_the_text(pointer: str, found: str | None) -> None:
    text = VALUE.decode()

    at = pointer_span(text, pointer)

    assert (at and text[slice(*at)]) == found


@pytest.mark.parametrize("text", ["", "{", '{"a"', '{"a":', '{"b":1,', "[" * 10_000, '{"b":' * 5_000, '{"a" 1}', "nul"])
def test_in_a_text_that_is_no_json_nothing_is_found(text: str) -> None:
    assert pointer_span(text, "/a/a") is None
