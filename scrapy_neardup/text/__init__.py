"""Text: extraction from HTML, tokens, lexicons, URLs. No Scrapy."""
