"""Collect evidence on mirror hosts and on variants of URLs, and derive rules from it. No Scrapy, no I/O."""
