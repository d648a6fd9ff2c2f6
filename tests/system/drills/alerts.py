"""`python -m tests.system.drills.alerts`: every alert exactly once, whatever fails.

Receipts arrive all the time. The alert processor is killed by `kill -9` at its failpoints and at random times; a fault
proxy holds, loses and delays the ends of its transactions; it is paused and replaced, runs twice under one name, hangs
and is ended by its watchdog; the broker is killed and stopped. At the end a read_committed reader must find
exactly the alerts that plain sums over the sent receipts require, each once, and none may have been visible before its
positions. `--naive` runs a naive alert processor, which must fail.

Prints one line and appends it to the ledger `alerts`.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tests.system.drills import alert_faults as faults
from tests.system.drills.alert_processes import START_SECONDS, AlertProcesses
from tests.system.drills.alert_readers import Reader, left_to_read, read_alerts
from tests.system.drills.drilled_broker import DrilledBroker, settings_for
from tests.system.drills.faults import exit_on_sigterm
from tests.system.drills.ledger_line import append
from tests.system.drills.naive_processor import NAIVE, PLAIN
from tests.system.drills.tills import Feeder, Key, Tills, stores_for
from views.alerts.alert import Window, format_instant, parse_instant_ms, raised_id

Thing = tuple[str, Callable[[faults.AlertDrill], None]]
TENANT, WINDOW_MS = "default", 900_000
TWIN_SECONDS, SETTLE_SECONDS = 10.0, 600.0
MOST_MINUTES = 60.0
"""The oldest window of the tills is still fresh then. A later crossing would be emitted by a publication instead."""
FORGET_EVERY = 25
"""After so many lives the snapshots are deleted."""


@dataclass(frozen=True)
class Plan:
    """`kills`: lives that are ended by one, of which `proxied` are attacked before. `twins`: how often two run at once.

    `pause`: how long a zombie stands still, in seconds; the product's transactions may take 30. After `minutes` nothing
    more is done, whatever is left of the plan: see MOST_MINUTES.
    """

    kills: int
    alerts: int
    seed: int = 1
    proxied: int = 0
    restarts: int = 0
    zombies: int = 0
    twins: int = 0
    pause: float = 50.0
    naive: str = ""
    minutes: float = 60.0


@dataclass
class Played:
    """What was done and what came of it. `crashed`: of the kills, those at a failpoint.

    `discarded`: discarded producers; `fenced`: alert processors that were refused, `woken_fenced` of them zombies.
    `late`: what the broker answered to ends that came late; `missed`: attacks that did not come to their moment.
    `premature`: alerts that were visible ahead of their positions.
    """

    plan: Plan
    kills: int = 0
    crashed: int = 0
    discarded: int = 0
    fenced: int = 0
    woken_fenced: int = 0
    sent: int = 0
    expected: int = 0
    seen: int = 0
    lost: int = 0
    twice: int = 0
    phantom: int = 0
    premature: int = 0
    resolved: int = 0
    orphans: int = 0
    seconds: float = 0.0
    places: dict[str, int] = field(default_factory=dict)
    attacks: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)

    @property
    def is_well(self) -> bool:
        """Each alert once, and something to see."""
        wrong = (self.lost, self.twice, self.phantom, self.orphans, self.premature)
        return self.expected > 0 and not any(wrong)

    @property
    def end_attacks(self) -> int:
        """On the end of a transaction."""
        return sum(self.attacks.get(each.name, 0) for each in faults.ENDS)


def play(broker: DrilledBroker, plan: Plan) -> Played:
    """With a broker that runs and has no alerts: send, harm, settle, compare."""
    began, chance, played = time.monotonic(), Random(f"kills {plan.seed}"), Played(plan)
    lives = AlertProcesses(broker.kafka, broker.proxied, broker.settings.home / "alerts", plan.naive)
    stores = stores_for(plan.alerts)
    lives.write_rules(stores)
    with lives.life(lives.orders()) as first:
        assert first.until(first.is_ready, START_SECONDS)
    lives.kills = 0
    tills, reader = Tills(broker.kafka, stores, plan.seed), Reader(broker.kafka)
    with Feeder(tills) as feeder:
        things = _things(plan, chance)
        ground = faults.AlertDrill(broker, lives, feeder, chance, tills.planned // max(1, len(things)) + 1)
        for number, (name, do) in enumerate(things):
            if time.monotonic() - began > plan.minutes * 60:
                break
            if number % FORGET_EVERY == FORGET_EVERY - 1:
                lives.forget()
            at = time.monotonic()
            do(ground)
            premature, took = reader.look(), time.monotonic() - at
            sys.stderr.write(f"  {number + 1}/{len(things)} {name} {took:.1f} s {tills.sent=} {premature=}\n")
    reader.close()
    expected = tills.finish()
    _settle(lives, broker)
    _compare(played, expected, read_alerts(broker.kafka))
    played.premature, played.sent, played.seconds = reader.premature, tills.sent, round(time.monotonic() - began, 1)
    _count(played, lives, ground.suffered)
    return played


def _things(plan: Plan, chance: Random) -> list[Thing]:
    """All that is done, mixed."""
    found = list[Thing]()
    for number in range(plan.kills - plan.proxied):
        point = faults.POINTS[number // 2 % len(faults.POINTS)]
        at = partial(faults.killed_at_a_point, point=point)
        found.append(("killed anywhere", faults.killed_anywhere) if number % 2 else (f"killed at {point}", at))
    found += [_through_proxy(number) for number in range(plan.proxied)]
    found += [("broker gone", partial(faults.broker_gone, graceful=number % 2 == 1)) for number in range(plan.restarts)]
    for number in range(plan.zombies):
        do = partial(faults.zombie, seconds=plan.pause, has_heir=number % 3 < 2)
        found += [("zombie", do)]
    found += [("twins", partial(faults.twins, seconds=TWIN_SECONDS))] * plan.twins
    chance.shuffle(found)
    return found


def _through_proxy(number: int) -> Thing:
    """Five of six are about the end of a transaction."""
    group, place = divmod(number, 6)
    if place < len(faults.ENDS):
        attack = faults.ENDS[place]
        return attack.name, partial(faults.attacked, attack=attack)
    if group % 4 == 3:
        return faults.PRODUCE.name, partial(faults.attacked, attack=faults.PRODUCE)
    api = faults.HANGS[group % 4]
    return f"hold {int(api)}", partial(faults.hung, api=api)


def _settle(lives: AlertProcesses, broker: DrilledBroker) -> None:
    """All is read. A processor that ends by itself, as a naive one may, is started again, as by a supervisor."""
    before, deadline = lives.kills, time.monotonic() + SETTLE_SECONDS
    while left_to_read(broker.kafka) > 0:
        assert time.monotonic() < deadline, "the alert processor does not catch up"
        with lives.life(lives.orders()) as last:
            last.until(lambda: left_to_read(broker.kafka) == 0, deadline - time.monotonic())
    lives.kills = before


def _compare(played: Played, expected: set[Key], found: list[dict[str, Any]]) -> None:
    raised = [each for each in found if each["kind"] == "raised"]
    ids = Counter(each["alert_id"] for each in found)
    keys = Counter((each["rule"], each["store"], each["window"]["from"]) for each in raised)
    played.expected, played.seen = len(expected), len(raised)
    played.lost = len(expected - keys.keys())
    played.phantom = len(keys.keys() - expected) + sum(each["alert_id"] != _id(each) for each in raised)
    played.twice = sum(count - 1 for count in ids.values()) + sum(count - 1 for count in keys.values())
    raised_ids = {each["alert_id"] for each in raised}
    resolved = [each for each in found if each["kind"] == "resolved"]
    played.resolved, played.orphans = len(resolved), sum(each["about"] not in raised_ids for each in resolved)


def _id(alert: dict[str, Any]) -> str:
    """That it has to have: rules stay at their first version, and every shop is of one tenant."""
    start = alert["window"]["from"]
    end = format_instant(parse_instant_ms(start) + WINDOW_MS)
    return raised_id(alert["rule"], 1, (TENANT, alert["store"]), Window(start, end), alert["dimensions"])


def _count(played: Played, lives: AlertProcesses, suffered: faults.Suffered) -> None:
    played.kills, played.crashed = lives.kills, lives.crashed
    played.discarded, played.fenced, played.woken_fenced = lives.discarded, lives.fenced, suffered.woken_fenced
    played.places, played.attacks = dict(suffered.places), dict(suffered.attacks)
    played.late, played.missed = dict(suffered.late), dict(suffered.missed)


def _minutes(text: str) -> float:
    if not 0 < (minutes := float(text)) <= MOST_MINUTES:
        raise argparse.ArgumentTypeError(f"{text} is not within {MOST_MINUTES:.0f}: older windows are left to batch")
    return minutes


def _plan() -> Plan:
    parser = argparse.ArgumentParser(prog="python -m tests.system.drills.alerts", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="processes that are killed")
    parser.add_argument("--alerts", type=int, default=10_000, help="how many are to be emitted, about")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--proxied", type=int, help="of the kills, how many through the fault proxy; else a quarter")
    parser.add_argument("--restarts", type=int, default=0, help="how often the broker is killed or stopped")
    parser.add_argument("--zombies", type=int, default=0, help="how often a process is paused, replaced and woken")
    parser.add_argument("--twins", type=int, nargs="?", const=5, default=0, help="how often two run at once, for 10 s")
    parser.add_argument("--pause", type=float, default=50.0, help="how long a zombie stands still, in seconds")
    parser.add_argument("--minutes", type=_minutes, default=MOST_MINUTES, help="of the plan: nothing more is done then")
    parser.add_argument("--naive", choices=NAIVE, default="", help="of a naive alert processor")
    arguments = parser.parse_args()
    quarter = 0 if arguments.naive == PLAIN else arguments.kills // 4  # without transactions there is no end to attack
    proxied = quarter if arguments.proxied is None else min(arguments.proxied, arguments.kills)
    return Plan(
        arguments.kills,
        arguments.alerts,
        arguments.seed,
        proxied,
        arguments.restarts,
        arguments.zombies,
        arguments.twins,
        arguments.pause,
        arguments.naive,
        arguments.minutes,
    )


def main() -> int:
    """Exit 1 if an alert was lost, premature, emitted twice or never expected."""
    plan = _plan()
    exit_on_sigterm()
    with (
        tempfile.TemporaryDirectory(prefix="galatea-alerts-") as folder,
        DrilledBroker(settings_for(Path(folder))) as broker,
    ):
        played = play(broker, plan)
    raised_ids = json.dumps({"at": f"{datetime.now(UTC):%F}", **asdict(played)})
    sys.stdout.write(raised_ids + "\n")
    append("alerts", raised_ids)
    return int(not played.is_well)


if __name__ == "__main__":
    sys.exit(main())
