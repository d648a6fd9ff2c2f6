"""Freshness and alarms."""
