"""Every drill: what is done to what, and where it is done. What nobody does says why."""

from typing import NamedTuple

QUICK = "`make drills`"
LONG = "`make campaign`"
ROOTED = f"{LONG} as root"


class Row(NamedTuple):
    """`sets`: Q, L or both. `where`: the command or test that does it, in order; or why nothing does."""

    id: str
    sets: str
    fault: str
    where: str


MATRIX = (
    Row("D01", "Q L", "broker killed, or ended as it is asked to", f"{QUICK}, {LONG}; three brokers: "
        "`tests/system/deployments/test_three_nodes.py`, `galatea prove P12`"),
    Row("D02", "L", "broker paused; *packets of broker and Cassandra lost one way, both ways, by chance, or refused",
        f"{LONG}; *{ROOTED}"),
    Row("D03", "L", "*power cut of the broker; of all disks at once", ROOTED),
    Row("D04", "Q L", "API worker killed while it is asked; lost acknowledgements",
        f"{QUICK}, `python -m tests.system.drills.posting`; `galatea prove P06 P07`"),
    Row("D05", "Q L", "speed ended at the points of a micro-batch", f"{QUICK} (one), {LONG} (all)"),
    Row("D06", "Q L", "archive ended at the points of a micro-batch",
        f"{QUICK} (one), {LONG} (all); any point: `tests/fast/laws/delivery/archive_lives.py`"),
    Row("D07", "Q L", "rebuild ended at each of its steps, and taken up again",
        f"`tests/integration/test_killed_rebuild.py`, {LONG} (one), `python -m tests.system.drills.killed` (all)"),
    Row("D08", "Q L", "Cassandra killed, paused", f"{QUICK}, {LONG}"),
    Row("D09", "L", "*power cut of Cassandra; its files damaged", f"{ROOTED}; `python -m tests.system.drills.damaged`"),
    Row("D10", "L", "*clocks of Cassandra, speed (a driver), archive and API jump by five minutes",
        f"{ROOTED}; `tests/fast/model` (`SKEW`), no write rests on a clock (`wall_clock`)"),
    Row("D11", "Q L", "the answer to a write or a switch is lost, and it was done",
        "`tests/fast/model` (`OUTCOME_SETTLED`, `OUTCOME_NOT_YES`), `tests/fast/laws/delivery/speed_law.py`; not on a wire: the tap "
        "speaks Kafka's"),
    Row("D12", "Q L", "the broker's clock steps back", "`tests/fast/model` (`SKEW`), `tests/fast/laws/delivery/fence_law.py`, "
        "`tests/integration/test_archived.py`"),
    Row("D13", "Q", "one identity on two partitions", "`tests/integration/test_ledger.py`, `tests/fast/model` (`ONE_HOME`)"),
    Row("D14", "Q L", "speed checkpoint removed while it is written", f"{QUICK}, {LONG}"),
    Row("D15", "Q", "speed stands still over a cut, both deliveries in one micro-batch",
        "`tests/integration/test_first_delivery.py`, `tests/system/deployments/test_catch_up.py`"),
    Row("D16", "Q L", "a checkpoint loses a part", "`tests/integration/test_checkpoint.py`"),
    Row("D17", "Q", "a second speed process; a second relay", f"{QUICK}, `tests/integration/test_claims.py`; "
        "a second relay: `tests/integration/test_alerts.py`, `python -m tests.system.drills.alerts`, `galatea prove P16`"),
    Row("D18", "Q L", "records deleted before they are read; a topic made anew",
        "`tests/integration/test_lost_records.py`, `tests/fast/unit/batch/test_fence.py`"),
    Row("D19", "Q L", "relay killed at each of its points", "`tests/integration/test_alerts.py`, "
        "`python -m tests.system.drills.alerts`; any call: `tests/fast/laws/delivery/relay_lives.py`"),
    Row("D20", "L", "coordinator killed; transactions that hang", "`python -m tests.system.drills.alerts`; left open: "
        "`tests/integration/test_abandoned_transaction.py`"),
    Row("D21", "Q L", "EndTxn delayed, repeated", "`galatea prove P17`; the relay: `tests/fast/laws/delivery/relay_lives.py`"),
    Row("D22", "Q L", "*full disk of broker, Cassandra, master dataset, checkpoints; errors and late answers of fsync",
        f"{ROOTED}; `tests/fast/unit/serving/test_disk_room.py`, `tests/fast/unit/stack/test_supervisor.py`"),
    Row("D23", "Q L", "a file of the master dataset is lost", "`tests/integration/test_faults.py`"),
    Row("D24", "L", "Airflow's worker killed", "`python -m tests.system.drills.killed`, `tests/integration/test_airflow.py`"),
    Row("D25", "Q L", "publications one after the other, with readers", "`tests/system/drills/moments.py` in D07, "
        f"the sampler in {QUICK}"),
    Row("D26", "Q L", "hostile clients", "`tests/fast/unit/serving/test_connections.py`, `python -m tests.system.drills.hostile`"),
    Row("D27", "L", "*too little memory, a tenth of a processor, for each component", ROOTED),
    Row("D28", "L", "an older state, a newer version", "not done: there is one version so far"),
    Row("D29", "L", "secrets and certificates change", "keys: `tests/integration/test_keys.py`; the rest: there is "
        "no encrypted profile of the local stack"),
    Row("D30", "Q L", "webhook endpoint that fails in every way", "`tests/integration/test_bad_receivers.py`, "
        "`tests/integration/test_webhooks.py`; more of them: `tests/fast/unit/webhooks/test_hostile_receivers.py`"),
    Row("D31", "Q", "planted and lost rows, old events, changed definitions", "`tests/integration/test_ledger.py`, "
        "`tests/integration/test_changed_definition.py`"),
    Row("D32", "L", "all of it at once", "`python -m tests.system.drills.mixed`, `python -m tests.system.drills.week`"),
)  # fmt: skip
