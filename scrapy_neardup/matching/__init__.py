"""The comparison of documents: candidates, the evidence on a pair, and the claim of a place in the store. No Scrapy."""
