"""Extraction of text from HTML, tokens, lexicons and URLs. No Scrapy."""
