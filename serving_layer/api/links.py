"""Where an answer leads: what it says is an argument of the next question. OpenAPI calls these links."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

BODY = "$response.body#/"
QUERY = "$request.query."
STORE, METRIC, PUBLICATION = f"{BODY}stores/0/id", f"{BODY}metrics/0/metric", f"{BODY}publications/0/publication"
RULE = f"{BODY}rules/0/id"
AS_ASKED = {name: f"{QUERY}{name}" for name in ("store", "from", "to")}


class Link(NamedTuple):
    """From an answer of one operation to another, whose `arguments` are texts of OpenAPI or of the answer."""

    name: str
    to: str
    arguments: Mapping[str, str]

    def described(self) -> dict[str, object]:
        """As OpenAPI has it."""
        return {"operationId": self.to, "parameters": dict(self.arguments)}


LINKS: Mapping[tuple[str, HTTPStatus], tuple[Link, ...]] = {
    ("list_stores", HTTPStatus.OK): (
        Link("numbers", "get_metric", {"store": STORE}),
        Link("cells", "get_cells", {"store": STORE}),
        Link("receipts", "get_raw_receipts", {"store": STORE}),
        Link("index", "get_index", {"store": STORE}),
    ),
    ("list_metrics", HTTPStatus.OK): (
        Link("numbers", "get_metric", {"metric": METRIC}),
        Link("index", "get_index", {"metric": METRIC}),
    ),
    ("get_metric", HTTPStatus.OK): (
        Link("next page", "get_metric", {**AS_ASKED, "metric": "$request.path.metric", "after": f"{BODY}next"}),
        Link(
            "the same as of then",
            "get_metric",
            {
                **AS_ASKED,
                "metric": "$request.path.metric",
                "as_of": f"{BODY}as_of/publication",
            },
        ),
    ),
    ("get_cells", HTTPStatus.OK): (
        Link(
            "the same as of then",
            "get_cells",
            {
                **AS_ASKED,
                "view": "$request.path.view",
                "as_of": f"{BODY}as_of/publication",
            },
        ),
    ),
    ("get_raw_receipts", HTTPStatus.OK): (
        Link(
            "next page",
            "get_raw_receipts",
            {
                "store": f"{QUERY}store",
                "day": f"{QUERY}day",
                "after": f"{BODY}next",
            },
        ),
    ),
    ("list_publications", HTTPStatus.OK): (
        Link("next page", "list_publications", {"before": f"{BODY}next"}),
        Link("numbers as of the newest", "get_metric", {"as_of": PUBLICATION}),
        Link("cells as of the newest", "get_cells", {"as_of": PUBLICATION}),
        Link("what it corrected", "list_corrections", {"publication": PUBLICATION}),
        Link("back to it", "roll_back", {"number": PUBLICATION}),
    ),
    ("roll_back", HTTPStatus.OK): (
        Link("numbers as of it", "get_metric", {"as_of": f"{BODY}publication"}),
        Link("what it corrected", "list_corrections", {"publication": f"{BODY}publication"}),
        Link("the history", "list_publications", {}),
    ),
    ("start_recompute", HTTPStatus.ACCEPTED): (
        Link("how far it is", "get_recompute", {"id": f"{BODY}id"}),
        Link("what it corrects", "list_corrections", {"recompute": f"{BODY}id"}),
    ),
    ("get_recompute", HTTPStatus.OK): (
        Link("how far it is", "get_recompute", {"id": f"{BODY}id"}),
        Link("what it corrects", "list_corrections", {"recompute": f"{BODY}id"}),
    ),
    ("list_webhooks", HTTPStatus.OK): (
        Link("next page", "list_webhooks", {"after": f"{BODY}next"}),
        Link("one", "get_webhook", {"webhook": f"{BODY}webhooks/0/id"}),
    ),
    **{
        (operation, status): (
            Link("as it is", "get_webhook", {"webhook": f"{BODY}id"}),
            Link("otherwise", "change_webhook", {"webhook": f"{BODY}id"}),
            Link("a test call", "test_webhook", {"webhook": f"{BODY}id"}),
            Link("another secret", "rotate_webhook", {"webhook": f"{BODY}id"}),
            Link("again", "resume_webhook", {"webhook": f"{BODY}id"}),
            Link("without a record", "skip_webhook_record", {"webhook": f"{BODY}id"}),
            Link("no more", "remove_webhook", {"webhook": f"{BODY}id"}),
        )
        for operation, status in (("create_webhook", HTTPStatus.CREATED), ("get_webhook", HTTPStatus.OK))
    },
    ("list_alerts", HTTPStatus.OK): (
        Link("next page", "list_alerts", {"after": f"{BODY}next"}),
        Link("with its records", "get_alert", {"alert_id": f"{BODY}alerts/0/alert_id"}),
        Link("its rule", "get_alert_rule", {"id": f"{BODY}alerts/0/rule"}),
    ),
    ("list_alert_rules", HTTPStatus.OK): (
        Link("one", "get_alert_rule", {"id": RULE}),
        Link("its versions", "list_alert_rule_versions", {"id": RULE}),
        Link("its alerts", "list_alerts", {"rule": RULE}),
    ),
    **{
        (operation, status): (
            Link("as it is", "get_alert_rule", {"id": f"{BODY}id"}),
            Link("otherwise", "change_alert_rule", {"id": f"{BODY}id"}),
            Link("no more", "remove_alert_rule", {"id": f"{BODY}id"}),
            Link("its versions", "list_alert_rule_versions", {"id": f"{BODY}id"}),
        )
        for operation, status in (
            ("create_alert_rule", HTTPStatus.CREATED),
            ("get_alert_rule", HTTPStatus.OK),
            ("change_alert_rule", HTTPStatus.OK),
        )
    },
    ("list_corrections", HTTPStatus.OK): (Link("next page", "list_corrections", {"after": f"{BODY}next"}),),
}
"""By operation and status."""
