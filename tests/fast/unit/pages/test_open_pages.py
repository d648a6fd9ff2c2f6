"""Documents that everybody may ask for, without a key, again and again."""

import json

import pytest

from tests.support.world import World
from tests.support.world_api import Asking


@pytest.mark.parametrize("path", ["/docs", "/openapi.json"])
def test_what_everybody_may_ask_for_is_made_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = Asking(World())

    first = asking.response(path)
    monkeypatch.setattr(asking.app, "openapi", None)  # what it is made of
    again = asking.response(path)

    assert [first.status_code, again.status_code] == [200, 200]
    assert first.content == again.content


def test_the_document_is_that_of_the_app() -> None:
    asking = Asking(World())

    assert asking.response("/openapi.json").json() == json.loads(json.dumps(asking.app.openapi()))
