"""Queries, from request to response. `answer.py` shows the five stages."""
