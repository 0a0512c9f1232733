"""Advise on URLs before a fetch and on dead links, and record visits. No Scrapy."""
