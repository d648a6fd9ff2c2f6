"""Alerts: rules are evaluated on the event streams, and each alert is emitted exactly once.

Rules do not depend on Kafka.
"""
