"""Alerts that were told, folded from their topic into tables where serving lists them."""
