"""Log one line instead of a traceback if a crawl can't start.

Scrapy does not handle an error that a component's `from_crawler` raises. So asyncio or Twisted logs the error with a
traceback of fifty lines or more, which does not help with a wrong setting or an unreadable store.
"""

from __future__ import annotations

import logging

_LOGGERS = ("asyncio", "twisted")


class _Shortened(logging.Filter):
    """Replaces the traceback of one error by the error's message.

    The filter keeps no reference to the error, since Twisted logs an error only when nothing refers to it any more.
    """

    def __init__(self, message: str) -> None:
        super().__init__()
        self._message = message

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.exc_info:
            return self._message not in record.getMessage()  # Twisted logs the error twice, first as text
        if str(record.exc_info[1]) == self._message:
            record.msg, record.args = "The crawl was not started: %s", (self._message,)
            record.exc_info = record.exc_text = None
            for name in _LOGGERS:
                logging.getLogger(name).removeFilter(self)
        return True


def shorten(error: Exception) -> None:
    """Shorten the log entry of an error that is about to be raised to one line, without the traceback."""
    shortened = _Shortened(str(error))
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(shortened)
