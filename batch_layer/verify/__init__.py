"""Verification: what both layers show, compared with a full recompute: every cell, and what cells add up to."""
