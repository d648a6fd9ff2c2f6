"""A broker behind a fault proxy that can be killed and restarted with its log."""

import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from deploy.jars import ensure_jars
from deploy.local.kafka import PROPERTIES, brokers
from deploy.local.nodes import LOOPBACK
from deploy.local.ports import free_ports
from deploy.settings import Settings
from lab.fault_proxy import FaultProxy
from master_dataset.kafka.connection import KafkaConnection

START_SECONDS, STOP_SECONDS = 180, 60
_MORE = """\
listeners=PLAINTEXT://{host}:{port},PROXY://{host}:{behind},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port},PROXY://{host}:{before}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXY:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
"""
"""What the last line says of a property counts. A transaction that is out of time is looked for every second."""


def settings_for(folder: Path) -> Settings:
    """Of a broker of its own."""
    api, kafka, controller, cassandra = free_ports(4)
    return Settings(
        home=folder / "home", api_port=api, kafka_port=kafka, kafka_controller_port=controller, cassandra_port=cassandra
    )


class DrilledBroker:
    """The stack's own, with one listener more. Use as a context manager. `proxied`: the way to it through the proxy."""

    def __init__(self, settings: Settings) -> None:
        """Nothing runs yet."""
        before, behind = free_ports(2)
        self.settings, self.kafka = settings, settings.kafka.connection
        self.proxied = KafkaConnection(f"{LOOPBACK}:{before}")
        self.proxy = FaultProxy(LOOPBACK, before, behind)
        self._ports = {"before": before, "behind": behind}
        self._component = brokers(settings)[0]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        ensure_jars(self.settings, parts=("kafka",))
        self.start()
        self.proxy.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.proxy.__exit__(kind, error, trace)
        self.stop()

    def start(self) -> None:
        """With the log that it has. Returns when it serves."""
        component, settings = self._component, self.settings
        component.prepare()
        ports = {"port": settings.kafka.port, "controller": settings.kafka.controller_port, **self._ports}
        with (settings.home / component.name / PROPERTIES).open("a") as file:
            file.write(_MORE.format(host=LOOPBACK, **ports))
        (settings.home / "logs").mkdir(parents=True, exist_ok=True)
        with component.log(settings.home).open("ab") as log:
            self._process = subprocess.Popen(component.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while not component.serves():
            assert self._process.poll() is None, f"the broker has ended: {component.log(settings.home).read_text()}"
            assert time.monotonic() < deadline, "the broker does not serve"
            time.sleep(0.1)
        component.once_ready()

    def kill(self) -> None:
        """As by `kill -9`."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """As an operator does, unless it takes too long."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
