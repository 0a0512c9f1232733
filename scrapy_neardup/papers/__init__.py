"""Algorithms that come from one paper each, with all the code that only they need."""
