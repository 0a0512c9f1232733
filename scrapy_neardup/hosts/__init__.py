"""Collect evidence on hosts that mirror each other, and derive rules from it. No Scrapy, no I/O."""
