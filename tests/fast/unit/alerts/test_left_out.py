"""Events that alerts leave out are an alarm, a row now and then and not one for each of them."""

from cassandra.cluster import NoHostAvailable

from deploy.services.alert_processor import NOTICE_AGAIN_SECONDS, MisroutedEvents


def test_many_of_a_topic_are_noticed_once_and_again_after_a_while() -> None:
    clock, noticed = [0.0], list[tuple[str, str]]()
    misrouted = MisroutedEvents(lambda name, _, place, __: noticed.append((name, place)), lambda: clock[0])

    for _ in range(3):
        misrouted.count("pos_transactions")
    misrouted.count("people_counts")
    clock[0] = NOTICE_AGAIN_SECONDS
    misrouted.count("pos_transactions")

    assert noticed == [
        ("alerts_miskeyed", "pos_transactions"),
        ("alerts_miskeyed", "people_counts"),
        ("alerts_miskeyed", "pos_transactions"),
    ]


def test_a_store_that_does_not_answer_stops_no_alert() -> None:
    def away(*_: object) -> None:
        raise NoHostAvailable("away", {})

    MisroutedEvents(away).count("pos_transactions")
