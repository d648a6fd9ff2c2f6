"""Questions that are no good, or nearly so, and what has to be answered: `cases.json`."""
