"""Alerts to the outside: signed calls of endpoints that a tenant has named, in order for each store."""
