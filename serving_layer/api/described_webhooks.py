"""Answers about webhooks, as the OpenAPI document shows them."""

from typing import Any

ENTRY: dict[str, Any] = {
    "id": "5f0c81d2a9b3",
    "tenant": "acme",
    "url": "https://acme.example/alerts",
    "batch": 100,
    "created_at": "2026-11-22T09:00:00Z",
    "state": "retrying",
    "since": "2026-11-22T10:12:07.250Z",
    "last_status": 503,
    "last_answer_at": "2026-11-22T10:14:30.100Z",
    "last_delivered_at": "2026-11-22T10:12:01.900Z",
    "lag": {"records": 4, "seconds": 143.7},
    "blocking": [
        {
            "record": "alerts/0/42",
            "store": "1",
            "since": "2026-11-22T10:12:07.250Z",
            "why": "the endpoint answered 503",
        }
    ],
    "seen_at": "2026-11-22T10:14:30.600Z",
}
MADE = {
    **ENTRY,
    "state": "ok",
    "since": None,
    "last_status": None,
    "last_answer_at": None,
    "last_delivered_at": None,
    "lag": {"records": 0, "seconds": 0.0},
    "blocking": [],
    "seen_at": None,
    "secret": "whsec_...",
}
TRIAL = {"outcome": "failed", "status": 503, "sentence": "the endpoint answered 503", "milliseconds": 31}
SKIPPED = {"webhook": "5f0c81d2a9b3", "record": "alerts/0/42", "dead_letter": "webhook.5f0c81d2a9b3/0/42"}
