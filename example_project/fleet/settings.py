import os

BOT_NAME = "fleet"
SPIDER_MODULES = ["fleet.spiders"]
REDIS_URL = os.environ.get("FLEET_REDIS", "redis://127.0.0.1:6379")

# What is known of contents, shared by all workers.
ADDONS = {"scrapy_neardup.Addon": 500}
NEARDUP_STORE = REDIS_URL
NEARDUP_NAMESPACE = "fleet"
NEARDUP_REVISIT = "drop"  # a page that another worker, or this one, has stored already is no item for a second time

# What is to be fetched, shared by all workers.
SCHEDULER = "fleet.queue.FleetScheduler"
DUPEFILTER_CLASS = "scrapy_redis.dupefilter.RFPDupeFilter"
SCHEDULER_PERSIST = True  # else the first worker that ends clears the queue of the others
MAX_IDLE_TIME_BEFORE_CLOSE = 3  # seconds; without it workers wait for work for ever

# The rest only serves the show.
DOWNLOAD_DELAY = 0.3  # so that the first worker does not have it all before the second one is up
HTTPPROXY_ENABLED = False  # both sites are on the loopback, which a proxy cannot reach
TELNETCONSOLE_ENABLED = False
