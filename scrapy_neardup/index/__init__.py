"""Indexes in RAM, from a fingerprint to documents. No Scrapy, no I/O."""
