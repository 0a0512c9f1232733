"""Find documents by their fingerprints: lookup structures in memory and in mapped files. No Scrapy."""
