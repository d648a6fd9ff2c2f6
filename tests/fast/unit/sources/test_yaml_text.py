"""YAML of users is bounded by its size with aliases written out, in every loader."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.reports.recipients import read_reports
from master_dataset.errors import BadFileError, BadFloorPlanError
from master_dataset.registry import floor_plans_file, stores_file, yaml_text
from master_dataset.registry.yaml_text import read_text, read_yaml
from serving_layer.alerts import rules_file
from serving_layer.saved.annotations_file import read_annotations

LONG = "x" * 1000
NESTED = "\n".join(["l0: &l0 [x, x]", *(f"l{each}: &l{each} [*l{each - 1}, *l{each - 1}]" for each in range(1, 40))])


def shared(repeats: int) -> str:
    """A list that repeats one long value through aliases."""
    return f"a: &a {LONG}\nstores: [{', '.join(['*a'] * repeats)}]"


def refusal(text: str, most_characters: int = yaml_text.MOST_CHARACTERS) -> BadFileError:
    with pytest.raises(BadFileError) as refused:
        read_yaml(text, most_characters=most_characters)
    return refused.value


def test_scalars_stay_text_and_an_empty_document_is_none() -> None:
    assert read_yaml("{id: 010, open: 08:00, on: off, none: ~}") == {
        "id": "010",
        "open": "08:00",
        "on": "off",
        "none": "~",
    }
    assert read_yaml("") is None


def test_anchors_and_aliases_work() -> None:
    text = "hours: &h {mon: [08:00-20:00]}\nstores: [{id: a, opening_hours: *h}, {id: b, opening_hours: *h}]"

    stores = read_yaml(text)["stores"]

    assert [each["opening_hours"] for each in stores] == [{"mon": ["08:00-20:00"]}] * 2


def test_a_value_that_aliases_repeat_counts_each_time() -> None:
    error = refusal(shared(6_000))

    assert "4,194,304 characters once its aliases are written out" in error.message
    assert "fewer aliases" in error.do
    assert "10,000 characters" in refusal(shared(20), most_characters=10_000).message
    assert len(read_yaml(shared(20))["stores"]) == 20


def test_aliases_of_aliases_are_refused_at_once() -> None:
    assert "1,000,000 values once its aliases are written out" in refusal(NESTED).message


def test_keys_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "MOST_NODES", 7)

    assert read_yaml("{a: 1, b: 2, c: 3}")
    assert "7 values" in refusal("{a: 1, b: 2, c: 3, d: 4}").message
    assert "5 characters" in refusal("abcdef: 1", most_characters=5).message


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: 1\nb: &b {c: [*b]}", "&a [[*a]]"])
def test_a_document_that_contains_itself_is_refused(text: str) -> None:
    error = refusal(text)

    assert "contains itself through an alias" in error.message
    assert f"line {text.count(chr(10)) + 1} " in error.message
    assert error.do == "Correct it: write the value instead of the alias."


def test_deep_documents_are_refused() -> None:
    chain = "\n".join(["a0: &a0 [x]", *(f"a{each}: &a{each} [*a{each - 1}]" for each in range(1, 60))])

    assert "more than 50 lists and mappings within each other" in refusal(chain).message
    assert "more than 50 lists and mappings" in refusal("[" * 5_000).message


def test_deep_brackets_are_refused_while_they_are_read() -> None:
    """For each of them, the scanner looks at all that are open: to scan the whole file first would take minutes."""
    assert refusal(f"[{'[' * 200}{']' * 200},\n" * 100).message.startswith("The file is not YAML: more than 50 lists")
    assert read_yaml("[" * 50 + "]" * 50)


@pytest.mark.parametrize("text", ["[", "a: *nowhere", "\x00", "{[a]: b}", '"\\UFFFFFFFF"', "a: \u202e: ]"])
def test_what_is_not_yaml_is_refused_without_raw_control_characters(text: str) -> None:
    error = refusal(text)

    assert error.message.startswith("The file is not YAML: ")
    assert "\u202e" not in error.message
    assert error.do == "Correct it and load it again."


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("stores:\n- {id: a}\nrest: x\nstores:\n- {id: b}", "stores", 4),
        ("stores:\n- id: a\n  timezone: UTC\n  'id': b", "id", 4),
        ("a: &k b\nc: {b: 1,\n *k : 2}", "b", 1),
        ('{"\\e[2J": 1,\n"\\e[2J": 2}', r"\x1b[2J", 2),
    ],
)
def test_a_key_that_is_written_twice_is_refused_as_one_of_both_values_would_be_lost(
    text: str, key: str, line: int
) -> None:
    error = refusal(text)

    assert error.message == f"The mapping has the key `{key}` again in line {line}."
    assert error.code == "repeated_field"


@pytest.mark.parametrize("text", [r'a: "\uD800"', r'"\uDFFFb": 1', r'[{a: [b, "c\uD83D\uDE00"]}]'])
def test_half_of_a_surrogate_pair_is_refused_as_nothing_else_could_hold_it(text: str) -> None:
    error = refusal(text)

    assert re.fullmatch(r"The text `.*\\ud[8-f].*` in line 1 has half of a surrogate pair\.", error.message)
    assert read_yaml('"\U0001f600\u00e9"') == "\U0001f600\u00e9"


def test_a_long_key_that_is_written_twice_is_cut() -> None:
    assert f"`{LONG[:100]}` again" in refusal(f"? {LONG}\n: 1\n? {LONG}\n: 2").message


def test_mappings_may_share_keys() -> None:
    assert read_yaml("[{a: {a: 1}}, {a: 2}]") == [{"a": {"a": "1"}}, {"a": "2"}]


BOMB = f"{NESTED}\n"
LOADERS: dict[str, Callable[[Path], object]] = {
    "stores": stores_file.load,
    "zones": lambda file: floor_plans_file.load_zones(file, ()),
    "rules": rules_file.load,
    "annotations": read_annotations,
    "reports": read_reports,
}


@pytest.mark.parametrize("name", LOADERS)
def test_every_loader_is_bounded(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.yaml"
    file.write_text(f"{BOMB}{name}: *l39\n")

    with pytest.raises((BadFileError, BadFloorPlanError), match="once its aliases are written out"):
        LOADERS[name](file)


@pytest.mark.parametrize("name", LOADERS)
def test_every_loader_refuses_what_is_not_yaml(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.yaml"
    file.write_text("[")

    with pytest.raises((BadFileError, BadFloorPlanError), match="not YAML"):
        LOADERS[name](file)


@pytest.mark.parametrize("name", LOADERS)
def test_every_loader_refuses_a_list_that_is_written_twice(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.yaml"
    file.write_text(f"{name}: []\n{name}: []\n")

    with pytest.raises((BadFileError, BadFloorPlanError), match=f"has the key `{name}` again in line 2"):
        LOADERS[name](file)


def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(BadFileError, match="larger than 1,000 bytes") as refused:
        read_text(Path("/dev/zero"), 1_000, if_too_long="Split it.", if_unreadable="Name a file.")

    assert refused.value.do == "Split it."


@pytest.mark.parametrize("load", [stores_file.load, rules_file.load, read_reports])
def test_no_loader_reads_an_endless_file(load: Callable[[Path], object]) -> None:
    with pytest.raises(BadFileError, match="larger than"):
        load(Path("/dev/zero"))
