"""The Delta tables: appends, commits that survive a power cut, and compaction."""
