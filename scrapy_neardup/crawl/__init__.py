"""What takes part in a crawl: the pipeline, the middlewares and what they share. Only this room knows Scrapy."""
