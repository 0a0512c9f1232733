"""Algorithms that come from one paper each, with everything that only they need."""
