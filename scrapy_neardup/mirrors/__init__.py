"""What is known of URLs and hosts: advice before a fetch, and host mirrors with their evidence. No Scrapy."""
