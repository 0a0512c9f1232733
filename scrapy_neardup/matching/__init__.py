"""The comparison of documents: candidates, the evidence on a pair, and the claim of a document. No Scrapy."""
