"""The correction ledger (R13): which published values a publication changed, and why."""
