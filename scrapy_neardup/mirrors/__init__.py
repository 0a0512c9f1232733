"""Advice on URLs before a fetch and on dead links, and the record of visits. No Scrapy."""
