"""The archive, which stores every record, its positions, and the check of both."""
