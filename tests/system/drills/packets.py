"""What happens to the packets of a port of this machine: lost, lost by chance, or refused. Needs root and iptables."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

COMMAND = shutil.which("iptables") or ""
TO, FROM = "--dport", "--sport"
DROP = ("-j", "DROP")
BY_CHANCE = ("-m", "statistic", "--mode", "random", "--probability", "0.2", *DROP)
RESET = ("-j", "REJECT", "--reject-with", "tcp-reset")
WAYS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "what is sent to it is lost": ((TO,), DROP),
    "what it answers is lost": ((FROM,), DROP),
    "both ways are lost": ((TO, FROM), DROP),
    "a fifth is lost": ((TO, FROM), BY_CHANCE),
    "connections are reset": ((TO,), RESET),
}
"""By name: of which packets, and what is done with them."""


@contextmanager
def harmed(port: int, way: str) -> Iterator[None]:
    """Every packet of that port on loopback suffers it."""
    ends, verdict = WAYS[way]
    rules = [("INPUT", "-i", "lo", "-p", "tcp", end, str(port), *verdict) for end in ends]
    for rule in rules:
        _iptables("-A", *rule)
    try:
        yield
    finally:
        for rule in rules:
            _iptables("-D", *rule)


def _iptables(*words: str) -> None:
    subprocess.run([COMMAND, "-w", *words], check=True, capture_output=True)
