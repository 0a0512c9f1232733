from pathlib import Path

OUT = Path(__file__).parents[1] / "out"

BOT_NAME = "example"
SPIDER_MODULES = ["example.spiders"]

# These three lines enable the plugin; the first alone would do.
ADDONS = {"scrapy_neardup.Addon": 500}
NEARDUP_STORE = str(OUT / "neardup.sqlite")
NEARDUP_RECHECK = 0  # by default one skippable page in a hundred is fetched all the same: here every run shall be alike

# The rest only serves the show.
EXTENSIONS = {"example.recorder.Recorder": 500}
RUN_RECORD = str(OUT / "run.json")
CONCURRENT_REQUESTS = 1  # so that the logs read in the order in which things happen
HTTPPROXY_ENABLED = False  # both sites are on the loopback, which a proxy cannot reach
TELNETCONSOLE_ENABLED = False
