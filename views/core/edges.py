"""Where the bins of histograms begin, in milliseconds: one scale for each kind of duration, so they can be compared."""

STAY_EDGES = tuple(minutes * 60_000 for minutes in (0, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180))
WAIT_EDGES = tuple(seconds * 1000 for seconds in (0, 15, 30, 60, 120, 180, 240, 300, 420, 600, 900, 1800))
