"""Webhooks, and what a test call came to."""

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from serving_layer.responses.encoding import Instant

TrialOutcome = Literal["done", "failed", "refused"]


class WebhookLag(Struct):
    """Records that were not read or delivered yet, and for how long the oldest has been waiting."""

    records: int
    seconds: float


class BlockingRecord(Struct):
    """A record that is retried, and blocks all later ones of its store."""

    record: str
    store: str
    since: Instant
    why: str


class Webhook(Struct):
    """A webhook and how it is doing: its `state`, `since` when, and the `last_status` that its endpoint answered with.

    `secret`, which signs the calls, is shown only when it is made.
    """

    id: str
    tenant: str
    url: str
    batch: int
    created_at: Instant
    state: Literal["ok", "refusing", "retrying", "suspended"]
    since: Instant | None
    last_status: int | None
    last_answer_at: Instant | None
    last_delivered_at: Instant | None
    lag: WebhookLag
    blocking: Sequence[BlockingRecord]
    seen_at: Instant | None
    secret: str | UnsetType = UNSET


class WebhookPage(Struct):
    """Webhooks, oldest first. `next`: the `after` of the next page, null on the last."""

    webhooks: Sequence[Webhook]
    next: str | None


class WebhookTrial(Struct, frozen=True):
    """What a call with alerts would have come to, and why. `status`: of the answer, null if there was none."""

    outcome: TrialOutcome
    status: int | None
    sentence: str | None
    milliseconds: int


class SkippedBlocker(Struct):
    """The record that was skipped, and the id of the dead letter that it becomes."""

    webhook: str
    record: str
    dead_letter: str
