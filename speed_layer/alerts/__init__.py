"""Alerts: rules are followed on the event streams, and each alert is emitted exactly once. The rules know no Kafka."""
