"""What one algorithm says of a document: pure functions of its tokens or their hashes. No Scrapy, no store."""
