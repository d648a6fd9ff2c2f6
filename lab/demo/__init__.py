"""The demo: the whole lambda on real receipts from one command, and a second opinion on every number that it shows."""
