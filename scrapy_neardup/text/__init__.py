"""Extract text from HTML, split it into tokens, load lexicons, and compare URLs. No Scrapy."""
