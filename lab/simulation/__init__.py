"""Simulated shops: sensors of a day that fit each other and the receipts. Nothing is real, and all of it says so."""
