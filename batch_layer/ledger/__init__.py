"""The correction ledger (R13): what a publication changed in what readers were shown, and why."""
