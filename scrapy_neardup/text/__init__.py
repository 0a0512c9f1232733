"""Extract text from HTML, split it into tokens, and compare titles and URLs. No Scrapy."""
