"""Webhooks, built from the settings."""
