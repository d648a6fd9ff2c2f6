"""Simulated stores: sensor records of a day that are consistent with each other and with the receipts."""
