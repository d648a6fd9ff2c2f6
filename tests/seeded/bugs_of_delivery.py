"""What is done wrong between a topic and those who read it."""

from tests.seeded.archive_lives import keep_what_positions_say
from tests.seeded.bug import Bug, Kind
from tests.seeded.consuming_lives import hand_over_everything
from tests.seeded.line import Line
from tests.seeded.relay_lives import tell_each_alert_once, tell_each_alert_once_whatever_was_torn

ARCHIVE = "master_dataset.archive:Archive._keep"
RELAY, SENDER = "speed_layer.alerts.relay:Relay", "speed_layer.alerts.sender:Sender"
KEPT = "what lies before a position of the archive is kept (R2, I01)"
TOLD = "each alert is told once, nothing of an unfinished transaction (I06 to I08)"
SPARK_TESTS = "tests/integration/test_seeded_bugs.py"

BUGS_OF_DELIVERY = (
    Bug(
        "commit_before_write", "the archive records its position before it has written the micro-batch",
        Kind.SIMULATION, KEPT, keep_what_positions_say,
        (Line(ARCHIVE, "    is_empty = repeats or events.isEmpty()",
              '    batch.write.format("noop").mode("overwrite").save()\n'
              "    for partition, each in seen.value.items():\n"
              "        self._positions.record(source.topic, partition, each.offset + 1, each.received_at)\n"
              "    is_empty = repeats or events.isEmpty()"),),
    ),
    Bug(
        "auto_commit", "whoever hands alerts over lets the driver commit by itself",
        Kind.SIMULATION, "each record of the topic is handed over at least once", hand_over_everything,
        (Line("master_dataset.consuming.consuming:Consuming.__init__",
              '"enable.auto.commit": False', '"enable.auto.commit": True'),),
    ),
    Bug(
        "read_uncommitted", "the relay of alerts reads what its sender has aborted",
        Kind.SIMULATION, TOLD, tell_each_alert_once,
        (Line("speed_layer.alerts.inlet:Inlet.__init__",
              '"isolation.level": "read_committed"', '"isolation.level": "read_uncommitted"'),),
    ),
    Bug(
        "producer_kept", "the relay keeps its producer although a commit was sent again in secret",
        Kind.SIMULATION, TOLD, tell_each_alert_once,
        (Line(f"{SENDER}.send", "if self._faults > before:", "if False:"),),
    ),
    Bug(
        "offset_without_one", "the position that the archive records is the last record, not the next",
        Kind.SIMULATION, "at rest every marker is passed, or no cut would be reached", keep_what_positions_say,
        (Line(ARCHIVE, "each.offset + 1, each.received_at", "each.offset, each.received_at"),),
    ),
    Bug(
        "committed_before_init", "the relay reads what is committed before it settles what its predecessor left open",
        Kind.SIMULATION, TOLD, tell_each_alert_once,
        (Line(f"{RELAY}._live", "        sender.settle()\n        self._begin(sender, inlet)",
              "        self._begin(sender, inlet)\n        sender.settle()"),),
    ),
    Bug(
        "flush_after_offsets", "positions join the transaction before its alerts are acknowledged",
        Kind.SIMULATION, "no alert is lost, even where half a transaction was committed (I06)",
        tell_each_alert_once_whatever_was_torn,
        (Line(f"{SENDER}._transact",
              "    if producer.flush(CALL_SECONDS) or self._refused:\n"
              '        raise Discarded("alerts were not acknowledged")\n', ""),
         Line(f"{SENDER}._transact",
              "    producer.send_offsets_to_transaction(places, group, CALL_SECONDS)\n",
              "    producer.send_offsets_to_transaction(places, group, CALL_SECONDS)\n"
              "    if producer.flush(CALL_SECONDS) or self._refused:\n"
              '        raise Discarded("alerts were not acknowledged")\n')),
    ),
    Bug(
        "data_loss_ignored", "a stream goes on behind records that the topic no longer has (`failOnDataLoss=false`)",
        Kind.SPARK, "a stream whose records are gone ends (I14)", where=SPARK_TESTS,
        changes=(Line("master_dataset.kafka:record_stream", '"failOnDataLoss", "true"', '"failOnDataLoss", "false"'),),
    ),
    Bug(
        "fixed_mark", "the mark of a commit names the archive, not the life of its checkpoint (a fixed `txnAppId`)",
        Kind.SIMULATION, KEPT, keep_what_positions_say,
        (Line(ARCHIVE, "mark = mark_of(query, number)", 'mark = mark_of("archive", number)'),),
    ),
    Bug(
        "position_before_sync", "the archive records its position before its commit is on the disk",
        Kind.SIMULATION, KEPT, keep_what_positions_say,
        (Line(ARCHIVE, "        self._tables.sync(source.topic, mark)\n", "        pass\n"),),
    ),
    Bug(
        "letters_best_effort", "a dead letter that cannot be written is left out",
        Kind.SIMULATION, "received = events + dead letters (I10)", keep_what_positions_say,
        (Line(ARCHIVE, "        self._tables.append_dead_letters(batch.where(\"kind = 'dead_letter'\"), mark)",
              "        try:\n"
              "            self._tables.append_dead_letters(batch.where(\"kind = 'dead_letter'\"), mark)\n"
              "        except OSError:\n"
              "            pass"),),
    ),
)  # fmt: skip
