"""Webhooks: every alert is delivered to the endpoints of its tenant, in order for each store."""
