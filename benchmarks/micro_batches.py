"""What the micro-batches of the speed layer spent their time on, as its log says."""

import re
from pathlib import Path
from statistics import median

STEPS = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets", "triggerExecution")


def steps(log: Path, at_most: int) -> dict[str, float]:
    """Of the last ones: the median of each step in ms."""
    told = [line for line in log.read_text().splitlines() if "event=speed.batch" in line][-at_most:]
    found = {step: [int(taken) for line in told for taken in re.findall(rf"\b{step}=(\d+)", line)] for step in STEPS}
    return {step: median(taken) for step, taken in found.items() if taken}
