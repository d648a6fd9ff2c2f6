"""Targets of stores for queries: `compare=target` shows what was to be reached beside what was."""
