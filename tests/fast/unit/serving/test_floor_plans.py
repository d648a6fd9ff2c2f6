"""Floor plans over REST: uploaded and drawn by whoever may configure, and read by whoever may read."""

import threading
from typing import Any

import pytest

from master_dataset.registry.floor_plans import PlanImage
from master_dataset.registry.floor_plans_file import read_image
from master_dataset.registry.stores import Store, Zone
from serving_layer.api import floor_plans
from tests.support import World
from tests.support.floor_plans import png
from tests.support.world_api import OPERATOR_KEY, Asking

PATH = "/v1/stores/12/floor-plan"
SHOES = {"zone": "shoes", "rectangle": {"x": 0.1, "y": 0.2, "width": 0.3, "height": 0.25}}
HATS = {"zone": "hats", "polygon": [[0.5, 0.5], [0.9, 0.5], [0.9, 0.9]]}


@pytest.fixture
def asking() -> Asking:
    zones = (Zone("shoes"), Zone("hats"))
    return Asking(
        World(
            Store(id="12", timezone="UTC", zones=zones),
            Store(id="a/b", timezone="UTC"),
            Store(id="acme-1", timezone="UTC", tenant="acme"),
        )
    )


def send(asking: Asking, method: str, path: str = PATH, key: str = OPERATOR_KEY, **said: Any) -> Any:
    headers = {"Authorization": f"Bearer {key}"} | said.pop("headers", {})
    return asking.request(method, path, headers=headers, **said)


def upload(asking: Asking, path: str = PATH, content: bytes = b"", kind: str = "image/png", **said: Any) -> Any:
    headers = {"Content-Type": kind} | said.pop("headers", {})
    return send(asking, "PUT", f"{path}/image", content=content or png(), headers=headers, **said)


def draw(asking: Asking, *zones: object, **said: Any) -> Any:
    return send(asking, "PUT", json={"zones": zones}, **said)


def test_an_image_is_uploaded_and_zones_are_drawn_on_it(asking: Asking) -> None:
    uploaded = upload(asking, kind="image/webp")  # what the request says of it does not count
    drawn = draw(asking, SHOES, HATS)

    assert (uploaded.status_code, drawn.status_code) == (200, 200)
    found = send(asking, "GET")
    assert found.json() == drawn.json()
    assert {name: value for name, value in found.json().items() if name not in {"saved_at", "version"}} == {
        "store": "12",
        "image": f"{PATH}/image",
        "media_type": "image/png",
        "bytes": len(png()),
        "width": 80,
        "height": 60,
        "zones": [
            {"zone": "shoes", "polygon": [[0.1, 0.2], [0.4, 0.2], [0.4, 0.45], [0.1, 0.45]]},
            {"zone": "hats", "polygon": HATS["polygon"]},
        ],
    }
    assert found.headers["etag"] == f'"{found.json()["version"]}"'
    assert uploaded.json()["version"] != drawn.json()["version"]
    assert [act[1:] for act in asking.acts] == [(f"PUT {PATH}/image", 200), (f"PUT {PATH}", 200)]


def test_an_image_is_read_off_the_event_loop(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def read(content: bytes) -> PlanImage:
        threads.append(threading.current_thread().name)
        return read_image(content)

    monkeypatch.setattr(floor_plans, "read_image", read)

    assert upload(asking).status_code == 200
    assert [name.rpartition("_")[0] for name in threads] == ["asyncio"]


def test_another_image_keeps_the_zones(asking: Asking) -> None:
    upload(asking)
    draw(asking, SHOES)

    changed = upload(asking, content=png(100, 90)).json()

    assert (changed["width"], [each["zone"] for each in changed["zones"]]) == (100, ["shoes"])


def test_an_image_is_inert_and_asked_for_again_only_if_it_changed(asking: Asking) -> None:
    upload(asking)

    image = send(asking, "GET", f"{PATH}/image")

    assert (image.content, image.headers["content-type"]) == (png(), "image/png")
    assert image.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in image.headers["content-security-policy"]
    assert image.headers["cache-control"] == "no-cache, private"
    again = send(asking, "GET", f"{PATH}/image", headers={"If-None-Match": image.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    upload(asking, content=png(100, 90))
    assert send(asking, "GET", f"{PATH}/image", headers={"If-None-Match": image.headers["etag"]}).status_code == 200


@pytest.mark.parametrize(
    ("zones", "field"),
    [
        ([SHOES | {"zone": "shoos"}], "zones[0].zone"),
        ([SHOES, SHOES], "zones[1].zone"),
        ([HATS, {"zone": "shoes"}], "zones[1]"),
    ],
)
def test_a_wrong_zone_is_named_and_nothing_changes(asking: Asking, zones: list[object], field: str) -> None:
    upload(asking)
    draw(asking, HATS)

    refused = draw(asking, *zones)

    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (422, "bad_floor_plan", field)
    assert [each["zone"] for each in send(asking, "GET").json()["zones"]] == ["hats"]


def test_what_a_schema_says_is_checked_first(asking: Asking) -> None:
    upload(asking)

    assert draw(asking, SHOES | {"colour": "red"}).json()["code"] == "unknown_argument"
    assert draw(asking, HATS | {"polygon": [[0, 0], [2, 0], [1, 1]]}).json()["code"] == "bad_question"
    assert draw(asking, *[SHOES] * 201).status_code == 422


def test_bodies_are_limited_in_kind_and_size(asking: Asking) -> None:
    svg = upload(asking, content=b"<svg onload='alert(1)'/>", kind="image/svg+xml")

    assert (svg.status_code, "SVG" in svg.json()["detail"]) == (415, True)
    assert upload(asking, content=b"<svg/>").json()["code"] == "bad_floor_plan"
    assert upload(asking, content=png() + bytes(2_000_000)).status_code == 413
    assert send(asking, "GET").status_code == 404


def test_a_plan_that_its_author_has_not_seen_is_not_changed(asking: Asking) -> None:
    first = upload(asking).headers["etag"]
    second = draw(asking, SHOES, headers={"If-Match": first}).headers["etag"]

    for refused in (
        draw(asking, HATS, headers={"If-Match": first}),
        upload(asking, headers={"If-Match": first}),
        send(asking, "DELETE", headers={"If-Match": first}),
    ):
        assert (refused.status_code, refused.json()["code"]) == (412, "floor_plan_changed")
    assert draw(asking, HATS, headers={"If-Match": "what was there"}).status_code == 412
    assert draw(asking, HATS, headers={"If-Match": "*"}).status_code == 200
    second = send(asking, "GET").headers["etag"]
    assert send(asking, "DELETE", headers={"If-Match": second}).status_code == 204
    assert send(asking, "GET").status_code == 404


def test_zones_need_an_image_and_ids_may_have_slashes(asking: Asking) -> None:
    assert draw(asking, SHOES).json()["detail"] == "Upload its image first."
    assert send(asking, "DELETE").status_code == 404

    uploaded = upload(asking, "/v1/stores/a%2Fb/floor-plan")

    assert uploaded.json()["image"] == "/v1/stores/a%2Fb/floor-plan/image"
    assert send(asking, "GET", uploaded.json()["image"]).content == png()


def test_only_configurers_write_and_each_tenant_has_its_own(asking: Asking) -> None:
    reader, other = asking.keys.make("default", "read"), asking.keys.make("acme", "read", "configure")
    assert asking.request("PUT", f"{PATH}/image", content=png()).status_code == 401
    assert upload(asking, key=reader).status_code == 403
    assert upload(asking, key=asking.keys.make("default", "read", "configure")).status_code == 200

    assert send(asking, "GET", key=reader).status_code == 200
    assert send(asking, "GET", key=other).json()["title"] == "There is no store `12`."
    assert upload(asking, key=other).status_code == 404
    assert send(asking, "DELETE", key=other).status_code == 404
    assert upload(asking, "/v1/stores/nobodys/floor-plan").status_code == 404


def test_a_process_without_floor_plans_says_so(asking: Asking) -> None:
    asking.app.state.floor_plans = None

    assert send(asking, "GET").json()["code"] == "not_offered"
