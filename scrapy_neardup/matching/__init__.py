"""Find the original of a document: candidates, evidence on pairs, and claims. No Scrapy."""
