"""The floor plan of a store as a page: the heat map, its numbers with their states, and the forms of configurers."""

import json
import re
import threading
from typing import Any

import httpx
import pytest

from master_dataset.registry.floor_plans import PlanImage
from master_dataset.registry.floor_plans_file import read_image, read_lines
from master_dataset.registry.stores import Sensor, Store, Zone
from serving_layer.pages import floor_plans
from tests.support import World
from tests.support.floor_plans import png
from tests.support.sensors import source_of
from tests.support.world_api import Asking
from tests.support.world_clients import ORIGIN, TOKEN, Browsing, words

PATH = "/floor-plans/12"
DRAWN = "shoes 10 20 30 25\nhats 50 20 30 25\nempty 1 1 5 5"
VERSION = re.compile(r'name="version" value="([^"]*)"')
SIZE, BOUNDARY = 2_000_000, "x-boundary"


def presence(zone: str, kind: str, at: str, entered: str = "") -> bytes:
    said = {"operation_id": "12", "sensor_id": "st", "zone": zone, "track": at, "kind": kind}
    return json.dumps(said | {"happened_at": at} | ({"entered_at": entered} if entered else {})).encode()


@pytest.fixture
def world() -> World:
    """A day with two people in shoes, of whom one stays, and two in hats; three days before, one in shoes."""
    sensors = (Sensor("st", "zone_presence"),)
    zones = tuple(Zone(zone) for zone in ("shoes", "hats", "empty", "sale", "window"))
    world = World(
        Store(id="12", timezone="UTC", name="Kosice", sensors=sensors, zones=zones),
        Store(id="7", timezone="UTC", name="Without"),
        Store(id="acme-1", timezone="UTC", tenant="acme"),
    )

    def stays(zone: str, *times: tuple[str, str], day: int = 21) -> None:
        for entered, left in times:
            start, end = f"2026-11-{day}T{entered}Z", f"2026-11-{day}T{left}Z"
            world.receive(presence(zone, "enter", start), start, source_of("zone_presence"))
            world.receive(presence(zone, "exit", end, start), end, source_of("zone_presence"))

    stays("shoes", ("08:10:00", "08:10:30"), day=18)
    stays("shoes", ("08:10:00", "08:11:00"), ("08:20:00", "08:20:02"))
    stays("hats", ("08:10:00", "08:11:00"))
    stays("sale", ("08:10:00", "08:10:02"))
    world.rebuild("2026-11-21T09:00:00Z")
    stays("hats", ("09:10:00", "09:13:00"))
    world.pass_time("2026-11-21T09:31:00Z")
    return world


@pytest.fixture
def asking(world: World) -> Asking:
    asking = Asking(world)
    asking.floor_plans.save("default", "12", image=read_image(png()), zones=read_lines(DRAWN, ()))
    return asking


@pytest.fixture
def operator(asking: Asking) -> Browsing:
    browsing = Browsing(asking)
    browsing.sign_in()
    return browsing


def polygons(page: str) -> dict[str, str]:
    """By zone the class of its polygon."""
    return {zone: kind for kind, zone in re.findall(r'<polygon points="[^"]+" class="([^"]+)"><title>(\w+):', page)}


def upload(browsing: Browsing, content: bytes, path: str = PATH, origin: str = ORIGIN, **fields: str) -> httpx.Response:
    """The response to the form with a file. Its token and version are those of the page unless said."""
    page = browsing.response("GET", path).text
    shown = {name: found[1] for name, form in (("token", TOKEN), ("version", VERSION)) if (found := form.search(page))}
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in {**shown, **fields}.items()
    ]
    head = 'Content-Disposition: form-data; name="image"; filename="plan.png"\r\nContent-Type: image/png'
    body = b"".join([*parts, f"--{BOUNDARY}\r\n{head}\r\n\r\n".encode(), content, f"\r\n--{BOUNDARY}--\r\n".encode()])
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", "Origin": origin}
    return browsing.response("POST", path, headers, body)  # type: ignore[arg-type]  # httpx takes bytes, too


def change(browsing: Browsing, **fields: str) -> httpx.Response:
    version = VERSION.search(browsing.get(PATH))
    return browsing.send(PATH, form_of=PATH, **{"version": version[1] if version else "", **fields})


def test_zones_are_shaded_by_their_dwell_with_its_state_and_reason(browsing: Browsing) -> None:
    page = browsing.get(PATH)

    assert polygons(page) == {"shoes": "shade-0 provisional", "hats": "shade-4 provisional", "empty": "shade-none"}
    assert "<title>hats: average dwell time 2 min 00 s, provisional</title>" in page
    assert "<title>empty: no events of this zone</title>" in page
    assert '<img src="/v1/stores/12/floor-plan/image" width="80" height="60"' in page
    assert "style=" not in page


def test_the_table_has_every_number_and_says_why_one_is_missing(browsing: Browsing) -> None:
    shown = browsing.words(PATH)

    assert "1 shoes provisional 2 1 33 % 1 min 00 s" in shown
    assert "2 hats provisional 2 2 67 % 2 min 00 s" in shown
    assert "3 empty \N{EN DASH} no events of this zone" in shown
    below = shown.split("Zones that are not drawn")[1]
    assert "sale provisional 1 0 0 % \N{EN DASH} no dwells to average" in below
    assert "window \N{EN DASH} no events of this zone" in below


def test_the_period_and_the_measure_can_be_chosen(browsing: Browsing) -> None:
    assert polygons(browsing.get(f"{PATH}?shade=zone_traffic_in"))["hats"] == "shade-0 provisional"
    of_range = browsing.words(f"{PATH}?range=this_week&day=2026-11-01")
    assert "This week 16 Nov \N{EN DASH} 22 Nov 2026" in of_range
    assert "2 hats provisional" in of_range
    earlier = browsing.words(f"{PATH}?day=2026-11-18")
    assert "1 shoes final 1 1 100 % 30 s" in earlier
    assert polygons(browsing.get(f"{PATH}?day=2026-11-18"))["shoes"] == "shade-0"
    assert "No zone on the plan has a known average dwell" in browsing.words(f"{PATH}?day=2026-11-19")
    assert "last_28_days" in browsing.words(f"{PATH}?range=last_28_dys", status=404)
    assert "There is no" in browsing.words(f"{PATH}?shade=red", status=422)


@pytest.mark.parametrize("day", ["0001-01-01", "1970-12-31", "2200-01-01", "9999-12-31", "86400", "today"])
def test_a_day_that_is_none_or_beyond_the_years_that_are_kept_is_refused(browsing: Browsing, day: str) -> None:
    assert "day" in browsing.words(f"{PATH}?day={day}", status=422)


@pytest.mark.parametrize("day", ["1971-01-01", "2026-11-22", "2199-12-31"])
def test_every_day_of_these_years_has_a_page(browsing: Browsing, day: str) -> None:
    assert "shoes" in browsing.words(f"{PATH}?day={day}")


def test_an_image_is_read_off_the_event_loop(operator: Browsing, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def read(content: bytes) -> PlanImage:
        threads.append(threading.current_thread().name)
        return read_image(content)

    monkeypatch.setattr(floor_plans, "read_image", read)

    assert upload(operator, png()).status_code == 303
    assert [name.rpartition("_")[0] for name in threads] == ["asyncio"]


def test_a_store_without_a_plan_says_what_to_do_in_one_line(browsing: Browsing, operator: Browsing) -> None:
    assert "This store has no floor plan yet: sign in with a key" in browsing.words("/floor-plans/7")
    assert '<form class="card sheet"' not in browsing.get("/floor-plans/7")
    assert "upload an image of it below" in operator.words("/floor-plans/7")


def test_other_tenants_see_nothing_of_it(asking: Asking) -> None:
    other = Browsing(asking)
    other.sign_in(asking.keys.make("acme", "read", "configure"))

    assert "There is no store" in other.words(PATH, status=404)
    assert upload(other, png(), version="").status_code == 404
    assert asking.floor_plans.plans["default", "12"].zones


def test_an_image_is_uploaded_and_zones_are_tried_before_they_are_saved(asking: Asking, operator: Browsing) -> None:
    uploaded = upload(operator, png(100, 90), "/floor-plans/7")
    assert (uploaded.status_code, uploaded.headers["location"]) == (303, "/floor-plans/7?done=uploaded")
    assert asking.floor_plans.plans["default", "7"].width == 100

    preview = change(operator, do="preview", zones="sale 10 20 30 25")
    assert (preview.status_code, list(polygons(preview.text))) == (200, ["sale"])
    assert "These zones are not saved yet." in preview.text
    assert "data-region" not in preview.text  # a refresh would put the saved zones in place of the preview
    assert "shoes" in polygons(operator.get(PATH))

    saved = change(operator, do="save", zones="sale 10 20 30 25")
    assert (saved.status_code, saved.headers["location"]) == (303, f"{PATH}?done=saved")
    assert list(polygons(operator.get(PATH))) == ["sale"]


def test_a_form_that_is_wrong_comes_back_as_it_was_filled_in(operator: Browsing) -> None:
    refused = change(operator, do="save", zones="shoes 10 20 30 25\nshoos 50 20 30 25")

    assert refused.status_code == 422
    assert "line 2 is no zone of the store: shoos. Use one of:" in words(refused.text)
    assert "shoos 50 20 30 25</textarea>" in refused.text
    assert change(operator, do="dance", zones="").status_code == 422


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        (b"<svg onload='alert(1)'/>", 422, "SVG, which can contain scripts"),
        (b"", 422, "The image is empty"),
        (bytes(SIZE + 1), 422, "more than 2,000,000"),
        (bytes(SIZE + 40_000), 413, "longer than"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(operator: Browsing, content: bytes, status: int, says: str) -> None:
    refused = upload(operator, content)

    assert (refused.status_code, says in words(refused.text)) == (status, True)


def test_a_plan_that_was_changed_meanwhile_is_not_overwritten(asking: Asking, operator: Browsing) -> None:
    version = asking.floor_plans.plans["default", "12"].version
    asking.floor_plans.save("default", "12", zones=())

    for refused in (
        change(operator, do="save", zones="", version=version),
        change(operator, do="remove", version=version),
        upload(operator, png(), version=version),
    ):
        assert (refused.status_code, "changed in the meantime" in refused.text) == (412, True)
    assert change(operator, do="remove").headers["location"] == f"{PATH}?done=removed"
    assert ("default", "12") not in asking.floor_plans.plans


def test_only_forms_of_configurers_and_of_this_address_count(asking: Asking, operator: Browsing) -> None:
    reader = Browsing(asking)
    reader.sign_in(asking.keys.make("default", "read"))
    assert "Change the floor plan" not in reader.get(PATH)
    before = dict(asking.floor_plans.plans)

    assert upload(reader, png()).status_code == 403
    assert upload(operator, png(), origin="https://elsewhere.example").status_code == 403
    assert upload(operator, png(), token="0" * 64).status_code == 403
    assert operator.send(PATH, form_of=PATH, do="remove", token="0" * 64).status_code == 403
    assert asking.floor_plans.plans == before


def test_a_body_that_is_no_form_is_refused(operator: Browsing) -> None:
    headers: dict[str, Any] = {"Origin": ORIGIN}
    for kind, body in (
        ("multipart/form-data", "a"),
        (f"multipart/form-data; boundary={BOUNDARY}", "a"),
        ("text/plain", "a"),
    ):
        assert operator.response("POST", PATH, headers | {"Content-Type": kind}, body).status_code in {403, 422}


@pytest.mark.parametrize(
    ("encoding", "token", "status"),
    [("undefined", b"x", 422), ("unicode_escape", b"\\ud800", 403), ("utf-8", b"x", 403)],
)
def test_an_upload_in_an_encoding_that_gives_no_characters_is_refused(
    operator: Browsing, encoding: str, token: bytes, status: int
) -> None:
    kind = f"multipart/form-data; boundary={BOUNDARY}; charset={encoding}"
    head = b'Content-Disposition: form-data; name="token"'
    body = b"--%b\r\n%b\r\n\r\n%b\r\n--%b--\r\n" % (BOUNDARY.encode(), head, token, BOUNDARY.encode())

    response = operator.response("POST", PATH, {"Content-Type": kind, "Origin": ORIGIN}, body)  # type: ignore[arg-type]  # httpx takes bytes, too

    assert response.status_code == status


def test_hostile_names_stay_text(asking: Asking, operator: Browsing) -> None:
    name = '"><script>alert(1)</script>'
    asking.floor_plans.save("default", "7", image=read_image(png()), zones=read_lines(f"{name} 1 1 50 50", ()))

    assert "<script>alert" not in operator.get("/floor-plans/7")
