"""RAM indexes from a fingerprint to the documents that have it or one near it. No Scrapy, no I/O."""
