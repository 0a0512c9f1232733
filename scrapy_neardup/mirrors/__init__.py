"""Knowledge of URLs and hosts: advice before a fetch, and mirrors with their evidence. No Scrapy."""
