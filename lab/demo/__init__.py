"""The demo: the whole platform on real receipts with one command, and an independent check of every number it shows."""
