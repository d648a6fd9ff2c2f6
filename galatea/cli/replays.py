"""What replays are told as: on a terminal in numbers, and what was not sent by its name."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deploy.console import answer, say, table

if TYPE_CHECKING:
    from master_dataset.dead_letters.item import Item

NAMED = 20
WORDS = {
    "event": "would become events",
    "sent": "sent",
    "duplicate": "are there already, nothing was sent",
    "refused": "would be dead letters again, not sent",
    "unknown": "not confirmed by the broker: send them again",
}


def tell(items: "Sequence[Item]", *, dry_run: bool, more: bool, as_json: bool) -> None:
    """`more`: whether others fit that were not looked at; `next` says behind which they are."""
    counts = Counter(each.outcome.value for each in items)
    if as_json:
        following = items[-1].place.id if more else None
        told = {"dry_run": dry_run, "counts": counts, "more": more, "next": following}
        answer({**told, "items": [each.shown() for each in items]})
        return
    others = [each for each in items if each.outcome not in {"event", "sent"}]
    named = items if len(items) <= NAMED else others[:NAMED]
    if named:
        table(("id", "outcome", "to", "reason", "field", "why"), [_row(each) for each in named])
    if len(others) > NAMED:
        say(f"  and {len(others) - NAMED:,} more that were not sent: --json names each")
    for outcome, number in counts.items():
        say(f"  {number:,} {WORDS[outcome]}")
    if not items:
        say("  nothing fits that was not sent again already")
    if more:
        say(f"  and there are more: the same again with --after {items[-1].place.id}")
    if counts["sent"]:
        say("  Next: galatea dead-letters list --replayed, which says what became of them")


def last(replays: Sequence[dict[str, Any]]) -> str:
    """What became of the newest replay of a letter; empty if there is none."""
    return str(replays[-1]["outcome"]) if replays else ""


def said(replay: dict[str, Any]) -> str:
    """What became of it."""
    behind = {"duplicate": replay["duplicate_of"], "conflict": replay["duplicate_of"], "dead_letter": replay["reason"]}
    where = replay["sent_to"] or ""
    return " ".join(word for word in (replay["outcome"], where, behind.get(replay["outcome"])) if word)


def _row(item: "Item") -> tuple[str, ...]:
    why = item.refusal
    where = item.to or item.of
    refused = (why.reason.value, why.field, why.sentence) if why else ("", "", "")
    return (item.place.id, item.outcome.value, where.id if where else "", *refused)
