"""Compute fingerprints and sketches, by pure functions of tokens or their hashes. No Scrapy, no store."""
