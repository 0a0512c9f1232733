"""Collect evidence on mirror hosts, and derive rules from it. No Scrapy, no I/O."""
