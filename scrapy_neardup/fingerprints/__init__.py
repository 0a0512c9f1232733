"""Fingerprint algorithms, as pure functions of tokens or their hashes. No Scrapy, no store."""
