"""Webhooks, for REST, pages and the command line."""
