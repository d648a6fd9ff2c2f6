"""Webhooks, wired from settings."""
