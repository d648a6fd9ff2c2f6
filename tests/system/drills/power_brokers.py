"""The stack's brokers without the rest of it, each with a disk of its own whose power can be cut."""

import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy.jars import ensure_jars
from deploy.local.component import Component
from deploy.local.kafka import PROPERTIES, brokers
from deploy.local.nodes import ONE
from deploy.settings import Settings
from tests.system.drills.host_faults import Disk, disks

DISK_MB = 1000
START_SECONDS, STOP_SECONDS = 600.0, 60.0
SYNCED = "log.flush.interval.messages"
_SHORT_SESSION = "broker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=500\n"
"""A broker is taken back when the session of its life before has ended. With one, nothing else depends on that."""


class PoweredBroker:
    """One broker. `is_synced`: whether it syncs as it is configured to; else its records are left to the system."""

    def __init__(self, component: Component, settings: Settings, disk: Disk, *, is_synced: bool = True) -> None:
        """Nothing runs yet."""
        self._component, self._settings, self._disk, self._is_synced = component, settings, disk, is_synced
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """With the log that its disk has. Returns before it serves."""
        component, home = self._component, self._settings.home
        component.prepare()
        file = home / component.name / PROPERTIES
        lines = file.read_text().splitlines(keepends=True)
        kept = "".join(line for line in lines if self._is_synced or not line.startswith(SYNCED))
        file.write_text(kept + (_SHORT_SESSION if self._settings.kafka.brokers == ONE else ""))
        with component.log(home).open("ab") as log:
            self._process = subprocess.Popen(component.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def await_in_sync(self) -> None:
        """Return when it serves, and says that each partition has a leader, and all of its copies in sync.

        It serves when it knows of its own new registration, with which it has left every set of copies in sync. What it
        says of them is then newer than the cut.
        """
        deadline = time.monotonic() + START_SECONDS
        log = self._component.log(self._settings.home)
        while lacking := self._lacking():
            assert self._process is not None
            assert self._process.poll() is None, f"the broker has ended: {log.read_text()[-2000:]}"
            assert time.monotonic() < deadline, f"{lacking}: {log.read_text()[-2000:]}"
            time.sleep(0.1)

    def pause(self) -> None:
        """As by `kill -STOP`. Returns when all of its threads stand still, and their calls of the system are done."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self._process.pid}/task")
        while any(not _stands_still(path) for path in tasks.glob("*/stat")):
            time.sleep(0.01)

    def photograph(self) -> None:
        """Keep what is on its disk now."""
        self._disk.photograph()

    def lose_power(self) -> None:
        """Go on with the photograph; the process, which is paused, is killed."""
        self._disk.lose_power()
        self.kill()

    def kill(self) -> None:
        """As by `kill -9`."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """As an operator does, unless it takes too long."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def _lacking(self) -> str:
        """What is not as it has to be, as this broker says; empty if nothing."""
        if not self._component.serves():
            return "the broker does not serve"
        kafka = replace(self._settings.kafka.connection, bootstrap=self._component.where["address"])
        try:
            listed = AdminClient({**kafka.client(), "log_level": 0}).list_topics(timeout=2)
        except KafkaException:
            return "the broker does not list topics"
        return ", ".join(
            f"{name} {number} has the leader {each.leader} and of {each.replicas} in sync {each.isrs}"
            for name, topic in listed.topics.items()
            for number, each in topic.partitions.items()
            if each.leader < 0 or len(each.isrs) < len(each.replicas)
        )


def _stands_still(stat: Path) -> bool:
    try:
        return stat.read_text().rpartition(")")[2].split()[0] in "TZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


class PoweredBrokers:
    """All brokers of a stack."""

    def __init__(self, each: Sequence[PoweredBroker]) -> None:
        """`each`: of them; they serve."""
        self.each = each

    def cut(self, numbers: Sequence[int]) -> None:
        """Cut the power of these, at the same time."""
        harmed = [self.each[number] for number in numbers]
        for broker in harmed:
            broker.pause()
        for broker in harmed:
            broker.photograph()
        for broker in harmed:
            broker.lose_power()

    def restart(self, numbers: Sequence[int]) -> None:
        """Start these again, and return when every copy of every partition is in sync."""
        for number in numbers:
            self.each[number].start()
        for number in numbers:
            self.each[number].await_in_sync()


@contextmanager
def powered_brokers(settings: Settings, *, are_synced: bool = True) -> Iterator[PoweredBrokers]:
    """Brokers as `galatea up` starts them, with its topics."""
    ensure_jars(settings, parts=("kafka",))
    components = brokers(settings)
    (settings.home / "logs").mkdir(parents=True)
    folders = [settings.home / each.name for each in components]
    with disks(settings.home / "disks", folders, DISK_MB) as own, ExitStack() as leaving:
        started = [PoweredBroker(each, settings, own[each.name], is_synced=are_synced) for each in components]
        for broker in started:
            leaving.callback(broker.stop)
            broker.start()
        for broker in started:
            broker.await_in_sync()
        for component in components:
            component.once_ready()
        yield PoweredBrokers(started)
