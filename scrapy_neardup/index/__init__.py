"""Find documents by their fingerprints: lookup structures in memory. No Scrapy, no I/O."""
