"""Backup and restore: what cannot be computed again, as files, and the master dataset by reference."""
