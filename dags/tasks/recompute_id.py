"""Which recompute a DAG run works on: always the same one, so that whatever is tried again or cleared takes it up."""

import hashlib
import re

ITS_OWN = "recompute"
"""The DAG whose runs are named by the recompute itself, because REST names both."""
_LONGEST = 200
_OTHER = re.compile(r"[^A-Za-z0-9._:+-]")


def recompute_id(dag_id: str, run_id: str) -> str:
    """The id: up to 200 letters, digits and `. _ : + -`. Two runs never share one."""
    name = run_id if dag_id == ITS_OWN else f"{dag_id}.{run_id}"
    safe = _OTHER.sub("-", name)
    if safe == name and safe[0].isalnum() and len(safe) <= _LONGEST:
        return safe
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{ITS_OWN}-{digest}.{safe}"[:_LONGEST]
