"""Answers as long tables, for files: a row per point or cell, and nothing in them that the JSON answer does not say."""
