"""Find the original of a document: candidates, evidence on pairs, siblings, judgements of people. No Scrapy."""
