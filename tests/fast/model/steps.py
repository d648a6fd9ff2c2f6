"""The steps of which histories are made, and how often each is taken."""

from collections.abc import Callable
from random import Random

from tests.fast.model import reading, rebuilding, sending
from tests.fast.model.rules import Rule
from tests.fast.model.world import World

Step = Callable[[World, Random], str | None]
"""Gives back a line of the story, or None if it could not happen: so steps can be left out of a history."""

STEPS: dict[str, tuple[Step, int]] = {
    "send": (sending.send, 24),
    "repeat": (sending.repeat, 12),
    "end_transaction": (sending.end_transaction, 8),
    "wait": (sending.wait, 12),
    "wait_long": (sending.wait_long, 1),
    "wait_for_epoch": (sending.wait_for_epoch, 5),
    "lead": (sending.lead, 3),
    "step_back": (sending.step_back, 1),
    "archive": (reading.archive, 8),
    "speed": (reading.speed, 16),
    "lose_checkpoint": (reading.lose_checkpoint, 2),
    "replace": (reading.replace, 1),
    "deploy": (reading.deploy, 1),
    "ask": (reading.ask, 6),
    "begin": (rebuilding.begin, 6),
    "mark": (rebuilding.mark, 6),
    "compute": (rebuilding.compute, 6),
    "publish": (rebuilding.publish, 6),
    "end_run": (rebuilding.end_run, 1),
    "rebuild": (rebuilding.rebuild, 4),
    "rebuild_part": (rebuilding.rebuild_part, 3),
    "roll_back": (rebuilding.roll_back, 2),
    "lose_block": (rebuilding.lose_block, 1),
    "switch_rest": (rebuilding.switch_rest, 2),
    "grow": (sending.grow, 1),
    "announce": (sending.announce, 2),
    "confirm": (sending.confirm, 4),
    "send_ahead": (sending.send_ahead, 0),
    "far": (sending.far, 0),
    "wait_until_old": (sending.wait_until_old, 0),
    "wait_some": (sending.wait_some, 0),
    "speed_crashes": (reading.speed_crashes, 0),
    "speed_a_little": (reading.speed_a_little, 0),
    "repeat_last": (sending.repeat_last, 0),
    "lead_back": (sending.lead_back, 0),
}
"""By name: what happens, and how often beside the others; 0: in scenes only."""
Scene = tuple[str, ...]
SCENES: tuple[Scene, ...] = (
    (
        "speed",
        "send_ahead",
        "speed",
        "archive",
        "wait_until_old",
        "rebuild",
        "lose_checkpoint",
        "speed",
        "far",
        "speed",
    ),
    ("speed", "wait_for_epoch", "send", "speed", "lead_back", "repeat_last", "speed", "wait_some", "rebuild", "speed"),
    ("speed", "rebuild", "lose_checkpoint", "send", "send", "speed", "speed", "speed", "speed"),
    ("speed", "rebuild", "deploy", "rebuild_part", "speed", "speed", "rebuild", "rebuild_part"),
    ("speed", "send", "rebuild", "step_back", "send", "archive", "rebuild_part", "wait", "rebuild", "speed"),
    ("speed", "rebuild", "send", "wait", "speed", "rebuild", "wait", "roll_back", "speed", "rebuild"),
    ("speed", "rebuild", "begin", "mark", "archive", "compute", "rebuild", "publish", "publish"),
    (
        "grow",
        "send",
        "repeat_last",
        "speed",
        "announce",
        "send",
        "repeat_last",
        "confirm",
        "repeat_last",
        "speed",
        "archive",
        "rebuild",
        "repeat_last",
        "speed",
        "lose_checkpoint",
        "speed",
        "speed",
    ),
)
"""Steps that are rarely in this order by chance, and of which something may depend. Others may come in between."""
AIMED: dict[Rule, Scene] = {
    Rule.OLD_ONES_FIRST: (
        *("speed", "send", "grow", "announce", "confirm", "wait_for_epoch", "wait_some", "repeat_last", "rebuild"),
        *("speed_a_little", "speed_a_little", "speed"),
    ),
    Rule.SKEW: ("speed", "wait_for_epoch", "rebuild", "lead_back", "send", "send", "archive", "speed"),
    Rule.TAKE_OVER_SAME: ("speed", "rebuild", "send", "send", "send", "speed", "deploy", "speed", "speed", "deploy"),
    Rule.PARTIAL_SAME_DEFINITIONS: ("speed", "send", "send", "rebuild", "deploy", "speed", "rebuild_part"),
    Rule.FIRST_BY_OFFSET: SCENES[1],
    Rule.CUT_SELECTS_RESULTS: SCENES[1],
    Rule.FUTURE: SCENES[0],
    Rule.OLD_DRIVER_ENDS: SCENES[2],
    Rule.HALF_WRITTEN: ("speed", "send", "send", "send", "speed_crashes", "lose_checkpoint", *["speed_a_little"] * 20),
}
"""Where chance alone takes hundreds of histories until a rule is missed, what makes it fewer."""
