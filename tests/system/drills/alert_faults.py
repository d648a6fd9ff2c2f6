"""Faults of alert processes: killed, paused, run twice, cut off from responses of the broker, or without a broker."""

import signal
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from lab.fault_proxy import Action, Api, Rule
from tests.system.drills.alert_processes import START_SECONDS, AlertProcess, AlertProcesses
from tests.system.drills.alert_readers import left_to_read
from tests.system.drills.drilled_broker import DrilledBroker
from tests.system.drills.tills import Feeder

POINTS = ("folded", "begun", "produced", "flushed", "offsets", "committed", "kept")
IN_TRANSACTION = POINTS[1:5]
SEEN_SECONDS = 3.0
"""Of patience, where the sender is to notice that no answer comes."""
STUCK_SECONDS = 4.0
GOES_ON = 3
"""Of four that are attacked in a way this one is not killed there."""
MORE = 40
"""Receipts for a transaction after the one that is attacked."""


class Attack(NamedTuple):
    """On the first request of a kind. `seen`: the sender's patience ends before an answer comes.

    `arrives`: what was held is delivered in the next transaction; else never.
    """

    name: str
    api: Api
    action: Action
    seen: bool = False
    arrives: bool = False


ENDS = (
    Attack("end held", Api.END_TXN, Action.HOLD, arrives=True),
    Attack("end lost", Api.END_TXN, Action.HOLD),
    Attack("end held, seen", Api.END_TXN, Action.HOLD_SILENTLY, seen=True, arrives=True),
    Attack("answer to end lost", Api.END_TXN, Action.DROP_RESPONSE),
    Attack("end lost, seen", Api.END_TXN, Action.DROP_REQUEST, seen=True),
)
PRODUCE = Attack("produce held", Api.PRODUCE, Action.HOLD, arrives=True)
HANGS = (Api.ADD_PARTITIONS_TO_TXN, Api.ADD_OFFSETS_TO_TXN, Api.TXN_OFFSET_COMMIT)


@dataclass
class Suffered:
    """How often each was done. `late`: what the broker answered to what came late."""

    places: Counter[str] = field(default_factory=Counter)
    attacks: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    woken_fenced: int = 0


@dataclass
class AlertDrill:
    """Where it is done. `each`: receipts for a life."""

    broker: DrilledBroker
    lives: AlertProcesses
    feeder: Feeder
    chance: Random
    each: int
    suffered: Suffered = field(default_factory=Suffered)


def killed_at_a_point(ground: AlertDrill, point: str) -> None:
    """It ends there by itself; where it is not led to within some seconds, anywhere."""
    nth = 1 if point == "kept" else ground.chance.randrange(1, 3)
    orders = replace(ground.lives.orders(), end_at=f"alerts.{point}:{nth}")
    with ground.lives.life(orders) as life:
        ground.feeder.add(ground.each)
        life.until(life.is_ready, START_SECONDS)
        life.until(lambda: not life.is_running, 4)
    ground.suffered.places[point] += 1


def killed_anywhere(ground: AlertDrill) -> None:
    """While it works, or, one time in four, while it still begins."""
    begins = ground.chance.random() < 0.25
    with ground.lives.life(ground.lives.orders()) as life:
        ground.feeder.add(ground.each)
        if not begins:
            life.until(life.is_ready, START_SECONDS)
        time.sleep(ground.chance.uniform(0, 1.0))
    ground.suffered.places["begin" if begins else "random"] += 1


def attacked(ground: AlertDrill, attack: Attack) -> None:
    """The first request of the kind is harmed; in the next transaction it pauses where alerts are written and positions
    are not. What was held comes then, and it is killed there, or goes on for a while.
    """
    proxy, partition = ground.broker.proxy, ground.chance.randrange(2)
    patience = {"call_seconds": SEEN_SECONDS} if attack.seen else {}
    orders = replace(
        ground.lives.orders(proxied=True), partitions=(partition,), end_at="alerts.flushed:2", pauses=True, **patience
    )
    rule = proxy.set_rule(Rule(attack.api, attack.action))
    with ground.lives.life(orders) as life:
        ground.feeder.add(ground.each)
        life.until(lambda: rule.hits > 0, START_SECONDS)
        ground.feeder.add(MORE)
        if life.until(lambda: life.is_paused, START_SECONDS):
            if attack.arrives and proxy.await_held(0):
                ground.suffered.late[str(proxy.release())] += 1
            if ground.suffered.attacks[attack.name] % 4 == GOES_ON:
                life.signal(signal.SIGCONT)
                life.until(lambda: not life.is_running, ground.chance.uniform(0, 1))
        else:
            ground.suffered.missed[attack.name] += 1
    _clear_faults(ground)
    ground.suffered.attacks[attack.name] += rule.hits


def hung(ground: AlertDrill, api: Api) -> None:
    """A request that is held for longer than the watchdog waits, which ends it; then it comes, or never does."""
    proxy = ground.broker.proxy
    rule = proxy.set_rule(Rule(api, Action.HOLD_SILENTLY, every=1, most=2))
    with ground.lives.watched(ground.lives.orders(proxied=True)) as life:
        ground.feeder.add(ground.each)
        deadline, is_stuck = time.monotonic() + START_SECONDS, False
        while not (is_stuck := life.is_stuck(STUCK_SECONDS) and rule.hits > 0) and time.monotonic() < deadline:
            assert life.ended() is None, "it has ended by itself"
        if not is_stuck:
            ground.suffered.missed[f"hold {int(api)}"] += 1
    if ground.chance.random() < 0.5 and proxy.await_held(0):
        proxy.release()
    _clear_faults(ground)
    ground.suffered.attacks[f"hold {int(api)}"] += 1


def zombie(ground: AlertDrill, seconds: float, *, has_heir: bool) -> None:
    """Paused inside a transaction for so long; an heir takes over or, without one, the broker's patience ends.

    Then it wakes, and there is something to tell. It has to be refused, and to end.
    """
    point = ground.chance.choice(IN_TRANSACTION)
    orders = replace(ground.lives.orders(), end_at=f"alerts.{point}:2", pauses=True)
    if seconds < orders.transaction_ms / 1000:
        orders = replace(orders, transaction_ms=int(seconds * 500), call_seconds=seconds / 2)
    with ground.lives.life(orders) as paused:
        ground.feeder.add(ground.each)
        paused.until(paused.is_ready, START_SECONDS)
        ground.feeder.add(MORE)
        if not paused.until(lambda: paused.is_paused, START_SECONDS):
            ground.suffered.missed["zombie"] += 1
            return
        woken_at = time.monotonic() + seconds
        with ground.lives.life(ground.lives.orders()) if has_heir else nullcontext():
            while time.monotonic() < woken_at:
                ground.feeder.add(MORE // 4)
                time.sleep(0.25)
            paused.signal(signal.SIGCONT)
            if paused.until(lambda: not paused.is_running, 30 if has_heir else 5):
                ground.suffered.woken_fenced += 1
    ground.suffered.places["zombie with an heir" if has_heir else "zombie"] += 1


def twins(ground: AlertDrill, seconds: float) -> None:
    """Two with one identity: each that ends begins again at once, and now and then one is killed."""
    pair: list[AlertProcess | None] = [None, None]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for number, each in enumerate(pair):
            if each is not None and (not each.is_running or ground.chance.random() < 0.02):
                ground.lives.finish(each)
                pair[number] = None
            if pair[number] is None:
                pair[number] = ground.lives.begin(ground.lives.orders())
        ground.feeder.add(MORE // 8)
        time.sleep(ground.chance.uniform(0.02, 0.2))
    for each in pair:
        if each is not None:
            ground.lives.finish(each)
    ground.suffered.places["twins"] += 1


def broker_gone(ground: AlertDrill, *, graceful: bool) -> None:
    """It stops during the work and comes back; the alert processor has to recover, and is killed then."""
    with ground.lives.life(ground.lives.orders()) as life:
        ground.feeder.add(ground.each)
        life.until(life.is_ready, START_SECONDS)
        time.sleep(ground.chance.uniform(0, 0.5))
        (ground.broker.stop if graceful else ground.broker.kill)()
        ground.feeder.add(MORE)
        time.sleep(ground.chance.uniform(0, 3))
        ground.broker.start()
        life.until(lambda: left_to_read(ground.broker.kafka) == 0, START_SECONDS)
    ground.suffered.places["broker stopped" if graceful else "broker killed"] += 1


def _clear_faults(ground: AlertDrill) -> None:
    ground.broker.proxy.clear_rule()
    ground.broker.proxy.discard_held()
