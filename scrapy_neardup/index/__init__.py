"""Lookup structures from fingerprints to documents. No Scrapy, no I/O."""
