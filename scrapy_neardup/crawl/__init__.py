"""What takes part in a crawl: the pipeline, the middlewares and what they share. Only this room knows Scrapy.

docs/architecture.md follows an item and a request through the files.
"""
