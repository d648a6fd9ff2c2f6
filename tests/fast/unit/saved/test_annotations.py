"""Notes on days: added, loaded, listed by range and store, and removed, each tenant its own."""

import asyncio
import gc
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from master_dataset.errors import BadFileError, UnknownNameError
from master_dataset.registry.stores import Store
from serving_layer.errors import BadQuestionError
from serving_layer.saved.annotations import MAX_ANNOTATIONS, Annotation, Annotations, NewAnnotation
from serving_layer.saved.annotations_file import read_annotations, read_body
from tests.support import World
from tests.support.saved import WorldAnnotations
from tests.support.world_api import MOST_SAVED, OPERATOR_KEY, Asking

PATH = "/v1/annotations"
BY = "a key", datetime(2026, 11, 1, tzinfo=UTC)
STORES = {
    "12": Store(id="12", timezone="UTC"),
    "40": Store(id="40", timezone="UTC"),
    "acme-1": Store(id="acme-1", timezone="UTC", tenant="acme"),
}
COFFEE = {"first_day": "2026-11-21", "last_day": "2026-11-23", "kind": "promotion", "text": "Coffee", "stores": ["12"]}


@pytest.fixture
def asking() -> Asking:
    return Asking(World(*STORES.values()))


def note(first: str, last: str = "", text: str = "A note", stores: tuple[str, ...] = ()) -> NewAnnotation:
    days = [date.fromisoformat(each) if each else None for each in (first, last)]
    assert days[0]
    return NewAnnotation(days[0], days[1], "note", text, stores)


def between(notes: list[NewAnnotation], stores: list[str] | None, first: str, last: str) -> list[str]:
    annotations = Annotations(WorldAnnotations())

    async def found() -> list[Annotation]:
        await annotations.add("default", notes, STORES, BY)
        days = date.fromisoformat(first), date.fromisoformat(last)
        return list(await annotations.annotations_between("default", stores, *days))

    return [each.text for each in asyncio.run(found())]


def test_a_range_finds_what_touches_it_by_first_day() -> None:
    notes = [
        note("2026-01-01", "2026-12-31", "the year"),
        note("2026-11-20", "2026-11-21", "until its first day"),
        note("2026-11-23", "2026-11-30", "from its last day"),
        note("2026-11-22", text="within"),
        note("2026-11-20", text="before"),
        note("2026-11-24", text="after"),
    ]

    found = between(notes, None, "2026-11-21", "2026-11-23")

    assert found == ["the year", "until its first day", "within", "from its last day"]


def test_a_chart_gets_the_notes_of_its_stores_and_of_all() -> None:
    notes = [
        note("2026-11-21", text="all"),
        note("2026-11-22", text="12", stores=("12",)),
        note("2026-11-23", text="40", stores=("40",)),
    ]

    assert between(notes, ["12"], "2026-11-01", "2026-11-30") == ["all", "12"]
    assert between(notes, [], "2026-11-01", "2026-11-30") == ["all"]
    assert between(notes, None, "2026-11-01", "2026-11-30") == ["all", "12", "40"]


@pytest.mark.parametrize(("first", "last"), [("0001-01-01", "9999-12-31"), ("2026-11-22", "2026-11-21")])
def test_any_range_has_an_answer(first: str, last: str) -> None:
    assert between([note("2026-11-21")], None, first, last) == (["A note"] if first < last else [])


@pytest.mark.parametrize(
    "wrong",
    [
        note("2026-11-22", "2026-11-21"),
        note("1999-12-31"),
        note("2200-01-01"),
        note("2026-01-01", "2027-01-02"),
        note("2026-11-21", text=" "),
        note("2026-11-21", text="x" * 301),
        note("2026-11-21", text="to\u202egether"),
        note("2026-11-21", stores=tuple(map(str, range(501)))),
    ],
)
def test_a_note_that_is_wrong_is_refused_with_all_beside_it(wrong: NewAnnotation) -> None:
    store = WorldAnnotations()

    with pytest.raises(BadQuestionError):
        asyncio.run(Annotations(store).add("default", [note("2026-11-21"), wrong], STORES, BY))
    assert store.kept == {}


def test_a_note_about_a_store_that_the_tenant_does_not_have_is_refused() -> None:
    wrong = note("2026-11-21", stores=("acme-1",))
    with pytest.raises(UnknownNameError):
        asyncio.run(Annotations(WorldAnnotations()).add("default", [wrong], STORES, BY))


def test_a_note_of_no_kind_is_refused_as_one_with_a_wrong_field() -> None:
    wrong = note("2026-11-21")._replace(kind="gossip")
    with pytest.raises(BadQuestionError, match="There is no kind `gossip`"):
        asyncio.run(Annotations(WorldAnnotations()).add("default", [wrong], STORES, BY))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"2026-11-21,,note,x,nobody", "Line 2: There is no store `nobody`."),
        (b"2026-11-21,,gossip,x,", "Line 2: There is no kind `gossip`."),
        (b"2026-11-21,2026-11-01,note,x,", "Line 2: `last_day` is before `first_day`."),
        (b"1999-01-01,,note,x,", "Line 2: `first_day` or `last_day` is out of range."),
        (b"2026-11-21,,note," + b"x" * 301 + b",", "Line 2: `text` has 301 characters."),
    ],
)
def test_what_is_wrong_with_a_file_names_its_line(line: bytes, said: str) -> None:
    wanted = read_body(b"first_day,last_day,kind,text,stores\n" + line + b"\n2026-11-22,,note,y,\n")
    store = WorldAnnotations()

    with pytest.raises(BadFileError) as refused:
        asyncio.run(Annotations(store).add("default", wanted, STORES, BY))
    assert refused.value.message == said
    assert refused.value.do.endswith("Nothing was loaded.")
    assert store.kept == {}


def test_after_a_wrong_line_the_file_is_closed_without_another_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unraisable: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)
    (tmp_path / "notes.csv").write_text("first_day,kind,text\nnever,note,x\n2026-11-22,note,y\n")

    with pytest.raises(BadFileError, match="`first_day` of line 2"):
        read_annotations(tmp_path / "notes.csv")
    gc.collect()

    assert unraisable == []


def test_what_is_wrong_with_yaml_names_its_entry(tmp_path: Path) -> None:
    (tmp_path / "promotions.yaml").write_text(YAML.replace("holiday", "gossip").replace(", b", ""))
    stores = STORES | {"a": Store(id="a", timezone="UTC")}

    with pytest.raises(BadFileError, match="Entry 2: There is no kind `gossip`"):
        asyncio.run(
            Annotations(WorldAnnotations()).add("default", read_annotations(tmp_path / "promotions.yaml"), stores, BY)
        )


def test_a_note_is_added_listed_and_removed_over_rest(asking: Asking) -> None:
    key = asking.keys.make("default", "read", "configure")

    made = asking.response(PATH, method="POST", key=key, said=COFFEE)

    assert made.status_code == 201
    assert asking.body(PATH, key=key)["annotations"] == [made.json()]
    assert asking.body(PATH, key=key, store="40")["annotations"] == []
    assert asking.body(PATH, key=key, first_day="2026-11-24")["annotations"] == []
    removed = asking.response(f"{PATH}/{made.json()['id']}", method="DELETE", key=key)
    assert (removed.status_code, removed.content) == (204, b"")
    assert asking.refusal(f"{PATH}/{made.json()['id']}", method="DELETE", key=key)["status"] == 404
    assert [act for _, act, _ in asking.acts][:2] == [f"POST {PATH}", f"DELETE {PATH}/{made.json()['id']}"]


def test_a_note_that_is_added_again_stays_one(asking: Asking) -> None:
    ids = {asking.response(PATH, method="POST", key=OPERATOR_KEY, said=COFFEE).json()["id"] for _ in range(2)}

    assert len(ids) == len(asking.annotations.kept) == 1


def test_a_list_has_pages(asking: Asking) -> None:
    for day in range(1, 4):
        said = {"first_day": f"2026-11-0{day}", "kind": "note", "text": str(day)}
        assert asking.response(PATH, method="POST", key=OPERATOR_KEY, said=said).status_code == 201

    first = asking.body(PATH, limit=2)
    second = asking.body(PATH, limit=2, after=first["next"])

    assert [each["text"] for each in first["annotations"] + second["annotations"]] == ["1", "2", "3"]
    assert second["next"] is None


def test_readers_change_nothing_and_tenants_see_their_own(asking: Asking) -> None:
    made = asking.response(PATH, method="POST", key=OPERATOR_KEY, said=COFFEE).json()
    theirs = asking.keys.make("acme", "read", "configure")
    reader = asking.keys.make("default")

    assert asking.refusal(PATH, method="POST", key=reader, said=COFFEE)["code"] == "scope_missing"
    assert asking.refusal(PATH, method="POST", said=COFFEE)["code"] == "key_missing"
    assert asking.body(PATH, key=theirs)["annotations"] == []
    assert asking.refusal(f"{PATH}/{made['id']}", method="DELETE", key=theirs)["status"] == 404
    assert asking.refusal(PATH, method="POST", key=theirs, said=COFFEE)["code"] == "unknown_name"
    assert asking.refusal(PATH, key=theirs, tenant="default")["status"] == 404
    assert asking.refusal(PATH, key=theirs, store="12")["status"] == 404
    assert len(asking.annotations.kept) == 1


@pytest.mark.parametrize("tenant", ["*", "nobody"])
def test_annotations_are_of_a_tenant_that_has_stores(asking: Asking, tenant: str) -> None:
    said = {each: COFFEE[each] for each in ("first_day", "kind", "text")}
    refused = [
        asking.refusal(PATH, key=OPERATOR_KEY, tenant=tenant),
        asking.refusal(f"{PATH}?tenant={tenant}", method="POST", key=OPERATOR_KEY, said=said),
        asking.refusal(f"{PATH}/x?tenant={tenant}", method="DELETE", key=OPERATOR_KEY),
    ]

    assert [each["status"] for each in refused] == [404] * 3
    assert asking.annotations.kept == {}


def test_a_tenant_has_a_most(asking: Asking) -> None:
    said = [COFFEE | {"text": str(number)} for number in range(MOST_SAVED + 1)]

    statuses = [asking.response(PATH, method="POST", key=OPERATOR_KEY, said=each).status_code for each in said]

    assert statuses == [201] * MOST_SAVED + [409]


@pytest.mark.parametrize(
    "change",
    [
        {"text": "x" * 301},
        {"text": "a\u202eb"},
        {"text": ""},
        {"kind": "gossip"},
        {"first_day": "1999-01-01"},
        {"first_day": 20261121},
        {"last_day": "2026-11-01"},
        {"stores": "12"},
        {"more": 1},
    ],
)
def test_a_body_that_is_wrong_is_refused_by_field(asking: Asking, change: dict[str, object]) -> None:
    assert asking.refusal(PATH, method="POST", key=OPERATOR_KEY, said=COFFEE | change)["status"] in {404, 422}
    assert asking.annotations.kept == {}


CSV = (
    b'first_day,last_day,kind,text,stores\n2026-11-21,,promotion,Coffee,"12, 40"\n2026-12-24,2026-12-26,holiday,Xmas,\n'
)


def test_a_file_is_loaded_whole_and_again_without_doubles(asking: Asking) -> None:
    headers = {"Content-Type": "text/csv", "Authorization": f"Bearer {OPERATOR_KEY}"}

    loaded = [asking.request("POST", f"{PATH}/load", headers=headers, content=CSV).json() for _ in range(2)]

    assert loaded == [{"tenant": "default", "loaded": 2, "count": 2}] * 2
    assert [each.stores for each in asking.annotations.kept.values()] == [("12", "40"), ()]


def test_a_file_with_one_wrong_line_loads_nothing(asking: Asking) -> None:
    headers = {"Content-Type": "text/csv", "Authorization": f"Bearer {OPERATOR_KEY}"}

    refused = asking.request("POST", f"{PATH}/load", headers=headers, content=CSV + b"2026-13-01,,note,x,\n")

    assert (refused.status_code, refused.json()["code"]) == (422, "bad_time")
    assert "line 4" in refused.json()["title"]
    assert asking.annotations.kept == {}


YAML = """annotations:
  - {first_day: 2026-11-21, kind: promotion, text: Coffee, stores: ["12", "a, b"]}
  - first_day: 2026-12-24
    last_day: 2026-12-26
    kind: holiday
    text: on
"""


def test_yaml_and_json_lines_say_the_same_as_csv(tmp_path: Path) -> None:
    (tmp_path / "promotions.yaml").write_text(YAML)
    lines = b'{"first_day": "2026-12-24", "last_day": "2026-12-26", "kind": "holiday", "text": "on"}\n'

    coffee, holiday = read_annotations(tmp_path / "promotions.yaml")

    assert coffee == NewAnnotation(date(2026, 11, 21), None, "promotion", "Coffee", ["12", "a, b"], "entry 1")
    assert [holiday._replace(place="line 1")] == read_body(lines)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a",
        "annotations: []",
        "annotations: [a]",
        "annotations: [{kind: note}]",
        "annotations: [{first_day: 2026-11-21, kind: note}]",
        "annotations: [{first_day: 2026-11-21, kind: note, text: [a]}]",
        "annotations: [{first_day: 2026-11-21, kind: note, text: a, stores: {a: b}}]",
        "annotations: [{first_day: 2026-11-21, kind: note, text: a, colour: red}]",
        "annotations: &a [*a]",
        "annotations: [}",
        "more: 1\nannotations: [{first_day: 2026-11-21, kind: note, text: a}]",
    ],
)
def test_a_yaml_that_is_wrong_is_refused_in_words(tmp_path: Path, text: str) -> None:
    (tmp_path / "promotions.yaml").write_text(text)

    with pytest.raises(BadFileError):
        read_annotations(tmp_path / "promotions.yaml")


def test_a_file_with_too_many_is_refused() -> None:
    line = b'{"first_day": "2026-12-24", "kind": "holiday", "text": "x"}\n'

    with pytest.raises(BadFileError, match="more than 5,000"):
        read_body(line * (MAX_ANNOTATIONS + 1))
