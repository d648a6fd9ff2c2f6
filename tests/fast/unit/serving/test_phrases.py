"""The names of HTTP statuses are those of RFC 9110, whatever the version of Python calls them."""

import re
from http import HTTPStatus

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from galatea.cli.reference.operator_pages import errors_page
from master_dataset.errors import GalateaError
from serving_layer.errors import BodyTooLargeError
from serving_layer.http.connection import error_bytes
from serving_layer.http.problem_types import HTTP_CODES, PHRASES, family
from serving_layer.http.problems import install
from tests.support.openapi_contract import document

OTHER = "Named Otherwise"


@pytest.fixture
def _other_python(monkeypatch: pytest.MonkeyPatch) -> None:
    for status in HTTPStatus:
        monkeypatch.setattr(status, "phrase", OTHER)


def test_every_status_of_an_error_has_a_name() -> None:
    errors = {error.status for error in family(GalateaError)}

    assert errors | {status for status, _ in HTTP_CODES.values()} <= PHRASES.keys()


@pytest.mark.parametrize("status", [status for status in PHRASES if status not in {413, 422}])
def test_names_are_those_of_the_standard(status: HTTPStatus) -> None:
    assert PHRASES[status] == status.phrase


@pytest.mark.usefixtures("_other_python")
def test_reference_pages_do_not_depend_on_python() -> None:
    errors, described = errors_page().text(), document.__wrapped__()

    assert "HTTP 422 Unprocessable Content" in errors
    assert OTHER not in errors
    assert OTHER not in str(described)
    refused = re.findall(r"'Refused: ([^']+)\.'", str(described))
    assert set(refused) <= set(PHRASES.values())


@pytest.mark.usefixtures("_other_python")
def test_responses_do_not_depend_on_python() -> None:
    app = FastAPI()
    install(app)
    app.add_api_route("/here", lambda: None)
    client = TestClient(app)

    unread = error_bytes(BodyTooLargeError("It is too large.", do="Send less."))
    unknown, wrong_method = client.get("/elsewhere"), client.delete("/here")

    assert unread.startswith(b"HTTP/1.1 413 Content Too Large\r\n")
    assert (unknown.json()["code"], unknown.json()["title"]) == ("not_found", "Not Found: `GET /elsewhere`.")
    assert (wrong_method.status_code, wrong_method.json()["code"]) == (405, "method_not_allowed")
