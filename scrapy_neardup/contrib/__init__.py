"""Optional components that most users never turn on. docs/contrib.md tells how to enable each.

No other part of scrapy_neardup imports these. Each component reads its own settings.
"""
