"""Enable the plugin with one line in the settings."""

from __future__ import annotations

from scrapy.settings import BaseSettings

from . import ItemOrigins, MirrorMiddleware, NearDupPipeline

FIRST = -1_000_000


class Addon:
    """Enables the middlewares and item pipelines, unless the settings already place them."""

    def update_settings(self, settings: BaseSettings) -> None:
        # After Offsite and before RobotsTxt. Responses reach it last, after Retry and Redirect.
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", MirrorMiddleware, 75)
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", ItemOrigins, FIRST)
        settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", ItemOrigins, FIRST)
        # Before 300, the number in Scrapy's project template.
        settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", NearDupPipeline, 200)
