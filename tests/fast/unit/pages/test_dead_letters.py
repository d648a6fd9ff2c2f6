"""Dead letters on pages: counted by reason, looked at with the field that fails, mended and sent again by a form."""

import re
from html import unescape

import pytest

from master_dataset.kafka.producer import DeliveryStatus
from tests.support.corpus.case import receipt
from tests.support.world_api import OPERATOR_KEY
from tests.support.world_clients import ORIGIN, TOKEN, Browsing

PATH = "/dead-letters"
NO_TIME = receipt({"happened_at": '"yesterday"'})
ONE = f"{PATH}/pos_transactions/0/0"
TEXTAREA = re.compile(r"<textarea[^>]*>\n(.*?)</textarea>", re.DOTALL)


@pytest.fixture
def operator(browsing: Browsing) -> Browsing:
    """Of tills: 0 and 1 have no time, 2 is no JSON; of counters one is no JSON either."""
    browsing.sign_in(OPERATOR_KEY)
    archive = browsing.asking.dead_letters.archive
    archive.receive(NO_TIME, receipt({"happened_at": "7", "transaction_id": "43"}), b'{"<b>\xff')
    archive.receive(b"[]", topic="people_counts")
    return browsing


def patched(page: str) -> str:
    """What stands in the form, with a time."""
    found = TEXTAREA.search(page)
    assert found
    return unescape(found[1]).replace('"yesterday"', '"2026-11-21T11:00:00Z"')


def places(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="/dead-letters/(\w+/\d/\d+)"', page)


def test_reasons_are_counted_and_say_who_acts(operator: Browsing) -> None:
    page = operator.get(PATH)

    assert re.findall(r">(\w+)</a></th><td>(\d)</td><td>(\d)</td>", page) == [
        ("bad_time", "2", "0"),
        ("not_json", "1", "0"),
        ("not_utf8", "1", "0"),
    ]
    assert "The sender must fix its program; you can correct the field in a replay" in page
    assert places(page)[0] == "pos_transactions/0/2"


def test_a_filter_chooses_and_an_empty_page_says_so(operator: Browsing) -> None:
    assert places(operator.get(f"{PATH}?reason=bad_time")) == ["pos_transactions/0/1", "pos_transactions/0/0"]
    assert places(operator.get(f"{PATH}?source=people_counts&to=2026-11-22")) == ["people_counts/0/0"]
    assert "No dead letter matches" in operator.get(f"{PATH}?from=2026-11-22&replayed=open")
    assert "cannot be shown" in operator.get(f"{PATH}?from=yesterday", status=422)
    assert "cannot be shown" in operator.get(f"{PATH}?reason=none", status=422)
    assert "cannot be shown" in operator.get(f"{PATH}?after=none", status=422)


def test_older_ones_are_a_page_away(operator: Browsing) -> None:
    operator.asking.dead_letters.archive.receive(*[b"{"] * 60)
    page = operator.get(PATH)
    older = re.search(r'rel="next" href="([^"]+)"', page)
    assert older

    rest = places(operator.get(unescape(older[1])))
    assert (len(set(places(page))), len(set(rest)), set(places(page)) & set(rest)) == (50, 14, set())


def test_where_there_is_none_the_page_says_so(browsing: Browsing) -> None:
    browsing.sign_in(OPERATOR_KEY)

    assert "No dead letters. Every record was valid." in browsing.get(PATH)


def test_one_is_shown_with_the_field_that_fails_marked(operator: Browsing) -> None:
    page = operator.get(ONE)

    assert "<mark>&#34;yesterday&#34;</mark>" in page
    assert "000000  7b 22 6f" in page
    assert patched(page) == NO_TIME.decode().replace("yesterday", "2026-11-21T11:00:00Z")


def test_what_is_no_text_stays_text_and_is_not_put_into_the_form(operator: Browsing) -> None:
    page = operator.get(f"{PATH}/pos_transactions/0/2")

    assert "{&#34;&lt;b&gt;\\xff" in page
    assert TEXTAREA.search(page)
    assert patched(page) == ""
    assert "cannot be edited here" in page


def test_a_trial_says_what_it_would_become_and_sends_nothing(operator: Browsing) -> None:
    body = patched(operator.get(ONE))

    good = operator.send(ONE, form_of=ONE, body=body, do="try").text
    bad = operator.send(ONE, form_of=ONE, body=body.replace("11:00:00Z", "noon"), do="try").text

    assert "It would become an event" in good
    assert "Still invalid. Nothing was sent." in bad
    assert "noon" in patched(bad)
    assert operator.asking.dead_letters.sender.carried == []


def test_a_patched_dead_letter_is_sent_and_its_page_shows_the_outcome(operator: Browsing) -> None:
    response = operator.send(ONE, form_of=ONE, body=patched(operator.get(ONE)).replace("\n", "\r\n"), do="replay")
    before = operator.get(ONE)
    operator.asking.dead_letters.archive.catch_up()
    after = operator.get(ONE)

    assert (response.status_code, response.headers["location"]) == (303, f"{ONE}#replays")
    assert "sent, not archived yet" in before
    assert '<span class="state" data-state="final">event, counts</span>' in after
    assert "<mark>&#34;yesterday&#34;</mark>" in after
    assert '<span class="tag">counts</span>' in operator.get(PATH)


def test_a_dead_letter_that_was_sent_links_to_where_it_counts_once_it_is_archived(operator: Browsing) -> None:
    [place] = operator.asking.dead_letters.archive.receive(receipt({"happened_at": '"late"', "operation_id": '"12"'}))
    path = f"{PATH}/{place.id}"
    body = TEXTAREA.search(operator.get(path))
    assert body
    after_midnight = unescape(body[1]).replace('"late"', '"2026-11-20T23:30:00Z"')

    sent = operator.send(path, form_of=path, body=after_midnight, do="replay").headers["location"]
    before = operator.get(sent.removesuffix("#replays"))
    operator.asking.dead_letters.archive.catch_up()
    after = operator.get(sent.removesuffix("#replays"))

    assert sent == f"{path}?store=12&day=2026-11-21#replays"
    assert "It counts within a few seconds." in before
    assert "/stores/12?day" not in before
    assert "It counts now." in after
    assert '<a href="/stores/12?day=2026-11-21">Show Kosice on Sat' in after
    assert "It counts now." not in operator.get(f"{path}?store=nobody&day=2026-11-21")


def test_a_form_that_was_not_changed_sends_the_bytes_as_they_are(operator: Browsing) -> None:
    [place] = operator.asking.dead_letters.archive.receive(
        receipt({"happened_at": '"2026-11-21T13:30:00Z"'}) + b"\r\n "
    )
    path = f"{PATH}/{place.id}"
    found = TEXTAREA.search(operator.get(path))
    assert found

    operator.send(path, form_of=path, body=unescape(found[1]), do="replay")

    [sent] = operator.asking.dead_letters.sender.carried
    assert sent.value.endswith(b"}\r\n ")
    assert '<td class="text">nothing</td>' in operator.get(path)


def test_what_is_there_already_and_what_the_broker_leaves_open_is_said(operator: Browsing) -> None:
    body = patched(operator.get(ONE))
    operator.asking.dead_letters.sender.says = lambda _: DeliveryStatus.UNCONFIRMED
    unknown = operator.send(ONE, form_of=ONE, body=body, do="replay").text
    operator.asking.dead_letters.sender.says = lambda _: DeliveryStatus.ACKNOWLEDGED
    operator.send(ONE, form_of=ONE, body=body, do="replay")
    operator.asking.dead_letters.archive.catch_up()

    there = operator.send(ONE, form_of=ONE, body=body, do="replay").text

    assert "Kafka did not confirm it" in unknown
    assert "It exists already" in there


def test_without_a_broker_the_form_says_so_as_it_was_filled_in(operator: Browsing) -> None:
    operator.asking.dead_letters.sender.is_away = True

    response = operator.send(ONE, form_of=ONE, body=patched(operator.get(ONE)), do="replay")

    assert response.status_code == 503
    assert "2026-11-21T11:00:00Z" in patched(response.text)


def test_many_are_tried_then_sent_with_one_field_set(operator: Browsing) -> None:
    fields = {"source": "pos_transactions", "pointer": "/happened_at", "value": '"2026-11-21T11:00:00Z"'}
    listed = f"{PATH}?source=pos_transactions"

    tried = operator.send(f"{PATH}/replay", form_of=listed, **fields, do="try").text
    sent = operator.send(f"{PATH}/replay", form_of=listed, **fields, do="replay").text
    again = operator.send(f"{PATH}/replay", form_of=listed, **fields, do="replay").text

    assert "Resend 2 dead letters" in tried
    assert len(operator.asking.dead_letters.sender.carried) == 2
    assert re.findall(r'dim">([^<]+)</h2><p class="big"><span class="figure"><span class="number">(\d)', sent) == [
        ("sent", "2"),
        ("still invalid, not sent", "1"),
    ]
    assert 'dim">sent</h2>' not in again


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "Choose a reason, source or time first."),
        ({"reason": "none"}, "reason"),
        ({"reason": "bad_time", "pointer": "x", "value": "1"}, "not a pointer"),
        ({"reason": "bad_time", "pointer": "/a", "value": "yesterday"}, "not JSON"),
        ({"reason": "bad_time", "after": "none"}, "not a valid token"),
    ],
)
def test_an_invalid_bulk_request_is_explained(operator: Browsing, fields: dict[str, str], said: str) -> None:
    response = operator.send(f"{PATH}/replay", form_of=f"{PATH}?reason=bad_time", **fields, do="replay")

    assert (response.status_code, said in response.text) == (422, True)
    assert operator.asking.dead_letters.sender.carried == []


@pytest.mark.parametrize("name", ["reason", "source", "from", "to"])
def test_a_filter_that_is_too_long_is_refused_in_words(operator: Browsing, name: str) -> None:
    response = operator.send(f"{PATH}/replay", form_of=PATH, **{name: "x" * 257}, do="try")

    assert response.status_code in {404, 422}
    assert f'href="{PATH}?replayed=open"' in response.text


def test_the_language_form_of_an_answer_leads_back_to_the_page_of_its_form(operator: Browsing) -> None:
    token = TOKEN.search(operator.get(PATH))
    assert token
    kind = {"Content-Type": "application/x-www-form-urlencoded", "Origin": ORIGIN}
    following = re.compile(r'action="/language"><input type="hidden" name="following" value="([^"]*)"')

    for referer, wanted in {
        f"{ORIGIN}{PATH}?reason=bad_time": f"{PATH}?reason=bad_time",
        "https://elsewhere.example/x": "/",
        f"{ORIGIN}{PATH}/replay": "/",  # the answer to a form before this one, which has no page of its own
        "http://[": "/",
        "": "/",
    }.items():
        page = operator.response("POST", f"{PATH}/replay", kind | {"Referer": referer}, f"token={token[1]}&do=try").text
        assert following.findall(page) == [wanted]
        operator.get(wanted)


@pytest.mark.parametrize("path", [ONE, f"{PATH}/replay"])
def test_a_form_of_another_page_or_session_sends_nothing(operator: Browsing, path: str) -> None:
    token = TOKEN.search(operator.get(ONE))
    assert token

    foreign = operator.post(path, f"token={token[1]}&do=replay&reason=bad_time", origin="https://elsewhere.example")
    forged = operator.post(path, f"token={'0' * 64}&do=replay&reason=bad_time")

    assert (foreign.status_code, forged.status_code) == (403, 403)
    assert operator.asking.dead_letters.sender.carried == []


def test_what_is_no_dead_letter_is_not_found(operator: Browsing) -> None:
    assert "There is no dead letter pos_transactions/0/99" in operator.words(
        f"{PATH}/pos_transactions/0/99", status=404
    )
    assert "cannot be shown" in operator.get(f"{PATH}/pos_transactions/0/-1", status=422)
