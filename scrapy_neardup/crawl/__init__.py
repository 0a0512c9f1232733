"""The components of a crawl: the pipeline, the middlewares and their shared state. Only this room uses Scrapy's engine.

docs/architecture.md follows an item and a request through the files.
"""
