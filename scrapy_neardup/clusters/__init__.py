"""Clusters of a whole batch of documents, from all of their texts at once. No Scrapy, no store."""
