"""Endpoints of webhooks, and what they have refused."""
