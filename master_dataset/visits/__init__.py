"""Visits: the only facts that are derived from several events, made of sightings by one rule in both layers."""
