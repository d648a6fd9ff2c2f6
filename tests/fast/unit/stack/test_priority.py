"""What a process sets for what it starts.

If it lowers its priority, it does so with its children, and never for a session that it does not own. Timer slack is
for what is started inside the block alone.
"""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from deploy.process import SESSION_NICENESS, timer_slack

WEIGHED = Path("/proc/self/autogroup")
CODE = """
import os, subprocess, sys
from deploy.process import lower_priority
lower_priority(7)
sys.stdout.write(subprocess.check_output([sys.executable, "-c", "import os; print(os.nice(0))"], text=True))
"""


def session_of_own(*, leads: bool) -> tuple[str, str]:
    """What a process that gives way printed, and how its session was weighed then; "" where none is."""
    script = f"{CODE}\nprint(open('{WEIGHED}').read())" if WEIGHED.exists() else CODE
    done = subprocess.run(
        [sys.executable, "-c", script], start_new_session=leads, capture_output=True, text=True, check=True
    )
    niceness, *session = done.stdout.split(maxsplit=1)
    return niceness, "".join(session).strip()


@pytest.mark.parametrize("leads", [True, False])
def test_what_a_process_starts_gives_way_with_it(*, leads: bool) -> None:
    niceness, _ = session_of_own(leads=leads)

    assert int(niceness) == max(os.nice(0), 7)


def test_a_component_gives_way_with_its_whole_session() -> None:
    _, session = session_of_own(leads=True)

    assert session.partition(" ")[2] == (f"nice {SESSION_NICENESS}" if WEIGHED.exists() else "")


def test_a_command_leaves_the_session_alone_that_it_was_started_in() -> None:
    before = WEIGHED.read_text().strip() if WEIGHED.exists() else ""

    _, session = session_of_own(leads=False)

    assert session == before


OWN_SLACK = Path("/proc/self/timerslack_ns")
UNKNOWN = "-1"


def slack_of_a_child() -> int:
    """In nanoseconds; -1 where the machine does not know it."""
    code = f"print(open('{OWN_SLACK}').read())" if OWN_SLACK.exists() else f"print({UNKNOWN})"
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def test_what_is_started_with_timer_slack_has_it_and_what_is_started_later_has_not() -> None:
    before = slack_of_a_child()

    with timer_slack(timedelta(milliseconds=1)):
        within = slack_of_a_child()

    assert within == (1_000_000 if OWN_SLACK.exists() else before)
    assert slack_of_a_child() == before != 1_000_000
