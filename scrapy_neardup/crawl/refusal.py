"""One line in the log for a crawl that is refused at its start.

Scrapy lets the error of a component's `from_crawler` go unhandled, and asyncio or Twisted logs it with a traceback of
fifty lines and more. These say nothing about a wrong setting or a store that can't be read.
"""

from __future__ import annotations

import logging

_LOGGERS = ("asyncio", "twisted")


class _Shortened(logging.Filter):
    """Replaces the traceback of one error by its message.

    It does not keep the error: Twisted logs it only once nothing refers to it.
    """

    def __init__(self, message: str) -> None:
        super().__init__()
        self._message = message

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.exc_info:
            return self._message not in record.getMessage()  # Twisted logs it twice, first as text
        if str(record.exc_info[1]) == self._message:
            record.msg, record.args = "The crawl was not started: %s", (self._message,)
            record.exc_info = record.exc_text = None
            for name in _LOGGERS:
                logging.getLogger(name).removeFilter(self)
        return True


def shorten(error: Exception) -> None:
    """Log an error that is about to be raised in one line, once nobody has handled it."""
    shortened = _Shortened(str(error))
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(shortened)
