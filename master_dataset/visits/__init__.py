"""Visits: facts that are derived from several events, by one rule in both layers."""
