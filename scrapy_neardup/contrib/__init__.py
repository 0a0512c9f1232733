"""Optional components that most users never turn on. docs/contrib.md tells how to enable each.

Nothing outside this package imports it. Each component reads its own settings.
"""
