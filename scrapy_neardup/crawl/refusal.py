"""Log one line in place of a traceback for a crawl that can't start.

Scrapy does not handle an error of a component's `from_crawler`. asyncio or Twisted logs it with a traceback of fifty
lines and more, which does not help with a wrong setting or an unreadable store.
"""

from __future__ import annotations

import logging

_LOGGERS = ("asyncio", "twisted")


class _Shortened(logging.Filter):
    """Replaces the traceback of one error by its message.

    It keeps no reference to the error, since Twisted logs an error only when nothing refers to it any more.
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
    """Make an error that is about to be raised appear in the log as one line, without its traceback."""
    shortened = _Shortened(str(error))
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(shortened)
