"""Compare documents, by candidates, evidence on pairs, and claims. No Scrapy."""
