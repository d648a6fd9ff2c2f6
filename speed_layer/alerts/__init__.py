"""Alerts: rules followed on the event streams, each alert raised exactly once. Its pure parts know no engine."""
