"""Every drill: the fault, and what runs it, or why nothing does."""

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
    Row(
        "D01",
        "Q L",
        "broker killed, or stopped by a signal",
        f"{QUICK}, {LONG}; three brokers: `tests/system/deployments/test_three_nodes.py`, `galatea prove P12`",
    ),
    Row(
        "D02",
        "L",
        "broker paused; *packets of broker and Cassandra lost one way, both ways or at random, or refused",
        f"{LONG}; *{ROOTED}",
    ),
    Row(
        "D03",
        "L",
        "*power failure of the broker; of all disks at once",
        f"{ROOTED}; again and again: `python -m tests.system.drills.power`",
    ),
    Row(
        "D04",
        "Q L",
        "API worker killed during requests; lost acknowledgements",
        f"{QUICK}, `python -m tests.system.drills.posting`; `galatea prove P06 P07`",
    ),
    Row("D05", "Q L", "speed ended at the failpoints of a micro-batch", f"{QUICK} (one), {LONG} (all)"),
    Row(
        "D06",
        "Q L",
        "archive ended at the failpoints of a micro-batch",
        f"{QUICK} (one), {LONG} (all); any step: `tests/fast/laws/delivery/archive_restarts.py`",
    ),
    Row(
        "D07",
        "Q L",
        "rebuild ended at each of its steps, and resumed",
        f"`tests/integration/test_killed_rebuild.py`, {LONG} (one), `python -m tests.system.drills.killed` (all)",
    ),
    Row("D08", "Q L", "Cassandra killed, paused", f"{QUICK}, {LONG}"),
    Row(
        "D09",
        "L",
        "*power failure of Cassandra; its files damaged",
        f"{ROOTED}; `python -m tests.system.drills.damaged`",
    ),
    Row(
        "D10",
        "L",
        "*clocks of Cassandra, speed (a driver), archive and API jump by five minutes",
        f"{ROOTED}; `tests/fast/model` (`SKEW`), no write depends on a clock; those of all processes at once: D34",
    ),
    Row(
        "D11",
        "Q L",
        "the response to a successful write or switch is lost",
        "`tests/fast/model` (`OUTCOME_SETTLED`, `OUTCOME_NOT_YES`), `tests/fast/laws/delivery/speed_law.py`; not on a network: "
        "the fault proxy only knows Kafka's protocol",
    ),
    Row(
        "D12",
        "Q L",
        "the broker's clock steps back",
        "`tests/fast/model` (`SKEW`), `tests/fast/laws/delivery/fence_law.py`, `tests/integration/test_archived.py`; "
        "on a real broker: D34",
    ),
    Row(
        "D13",
        "Q",
        "one identity in two partitions",
        "`tests/integration/test_ledger.py`, `tests/fast/model` (`ONE_HOME`)",
    ),
    Row("D14", "Q L", "speed checkpoint removed while it is being written", f"{QUICK}, {LONG}"),
    Row(
        "D15",
        "Q",
        "speed paused across a cut, both deliveries in one micro-batch",
        "`tests/integration/test_first_delivery.py`, `tests/system/deployments/test_catch_up.py`",
    ),
    Row("D16", "Q L", "part of a checkpoint lost", "`tests/fast/unit/speed/test_generation_checkpoint.py`"),
    Row(
        "D17",
        "Q",
        "a second speed process, which takes over from the first one, and both are killed; a second alert processor",
        f"{QUICK}, `tests/integration/test_claims.py`; "
        "a second alert processor: `tests/integration/test_alerts.py`, `python -m tests.system.drills.alerts`, `galatea prove P16`",
    ),
    Row(
        "D18",
        "Q L",
        "records deleted before they are read; a topic recreated",
        "`tests/integration/test_lost_records.py`, `tests/fast/unit/batch/test_fence.py`",
    ),
    Row(
        "D19",
        "Q L",
        "alert processor killed at each of its failpoints",
        "`tests/integration/test_alerts.py`, "
        "`python -m tests.system.drills.alerts`; any call: `tests/fast/laws/delivery/processor_restarts.py`",
    ),
    Row(
        "D20",
        "L",
        "coordinator killed; hanging transactions",
        "`python -m tests.system.drills.alerts`; left open: `tests/integration/test_abandoned_transaction.py`",
    ),
    Row(
        "D21",
        "Q L",
        "EndTxn delayed and repeated",
        "`galatea prove P17`; the alert processor: `tests/fast/laws/delivery/processor_restarts.py`",
    ),
    Row(
        "D22",
        "Q L",
        "*full disk of broker, Cassandra, master dataset, checkpoints; fsync fails or is slow",
        f"{ROOTED}; `tests/fast/unit/serving/test_disk_space.py`, `tests/fast/unit/stack/test_supervisor.py`",
    ),
    Row("D23", "Q L", "a file of the master dataset lost", "`tests/integration/test_faults.py`"),
    Row(
        "D24",
        "L",
        "Airflow's worker killed",
        "`python -m tests.system.drills.killed`, `tests/integration/test_airflow.py`",
    ),
    Row(
        "D25",
        "Q L",
        "one publication after another, with readers",
        f"`tests/system/drills/killed.py` in D07, the sampler in {QUICK}",
    ),
    Row(
        "D26",
        "Q L",
        "hostile clients",
        "`tests/fast/unit/serving/test_connections.py`, `python -m tests.system.drills.hostile`",
    ),
    Row("D27", "L", "*too little memory, or a tenth of a CPU, for each component", ROOTED),
    Row(
        "D28",
        "L",
        "downgrade and upgrade",
        "`tests/system/deployments/test_upgrade.py`; process by process and back with archive and speed: "
        "`tests/system/deployments/test_rolling_upgrade.py`",
    ),
    Row(
        "D29",
        "L",
        "secrets and certificates change",
        "keys: `tests/integration/test_keys.py`; certificates renewed while REST and SQL serve: "
        "`tests/fast/unit/serving/test_certificate.py`; "
        "of broker and Cassandra, at their next start: `tests/fast/unit/stack/test_secured_home.py`",
    ),
    Row(
        "D30",
        "Q L",
        "webhook endpoint that fails in every way",
        "`tests/integration/test_bad_receivers.py`, "
        "`tests/integration/test_webhooks.py`; more failures: `tests/fast/unit/webhooks/test_hostile_receivers.py`",
    ),
    Row(
        "D31",
        "Q",
        "extra and missing rows, old events, changed definitions",
        "`tests/integration/test_ledger.py`, `tests/integration/test_changed_definition.py`",
    ),
    Row(
        "D32",
        "L",
        "all faults in turn",
        "`python -m tests.system.drills.mixed`, `python -m tests.system.drills.week`",
    ),
    Row(
        "D33",
        "L",
        "*many short faults of every component at the same time, and long ones in between",
        f"`python -m tests.system.drills.storm`, {ROOTED}",
    ),
    Row(
        "D34",
        "L",
        "a day passes in jumps of all clocks, and the clock of the broker steps within and beyond the skew",
        "`python -m tests.system.drills.day`",
    ),
)
