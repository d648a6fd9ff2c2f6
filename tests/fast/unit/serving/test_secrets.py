"""A key is in no answer, no log, no metric and no line of the audit, whatever is asked with it."""

import logging

import pytest
from prometheus_client import REGISTRY, generate_latest

from serving_layer.keys.key import Scope
from tests.fast.unit.serving.test_headers import FILLED
from tests.support import World
from tests.support.corpus.case import receipt
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing

SCOPES: tuple[Scope, ...] = ("read", "ingest", "operate")


@pytest.fixture
def asking() -> Asking:
    world = World()
    world.rebuild("2026-11-21T10:00:00Z")
    return Asking(world)


def places(asking: Asking) -> list[tuple[str, str]]:
    """Of every operation, with something in the place of each name."""
    described = asking.app.openapi()["paths"]
    operations = [(method.upper(), path) for path, methods in described.items() for method in methods]
    return [(method, path.format(**FILLED)) for method, path in operations if "/live/" not in path]


def test_a_key_is_never_shown(
    asking: Asking, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    key = asking.keys.make("*", *SCOPES)
    guess = "galatea_5f0c81d2a9b3_" + "s3cret" * 8
    caplog.set_level(logging.DEBUG)
    browsing = Browsing(asking)

    texts = [
        browsing.sign_in(key).text,
        browsing.sign_in(guess).text,
        *(browsing.get(path) for path in ("/", "/stack")),
    ]
    for method, path in places(asking):
        for sent in (key, guess):
            response = asking.response(path, method=method, key=sent, said=receipt() if method == "POST" else None)
            texts.append(response.text + str(response.headers))

    texts += [caplog.text, *capsys.readouterr(), generate_latest(REGISTRY).decode(), str(asking.acts)]
    secrets = [sent.split("_", 2)[2] for sent in (key, guess)]
    assert [secret for secret in secrets for text in texts if secret in text] == []
    assert asking.acts
