"""The pipeline and the middlewares of a crawl, with their shared state. Only this package uses Scrapy's engine.

docs/architecture.md follows an item and a request through the files.
"""
