"""The master dataset: every event ever received, and how bytes become events."""
