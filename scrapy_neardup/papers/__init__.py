"""Algorithms that come from one paper each, with all that only they need."""
