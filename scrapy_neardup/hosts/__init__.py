"""Evidence on hosts that mirror each other, and the rules that follow from it. No Scrapy, no I/O."""
