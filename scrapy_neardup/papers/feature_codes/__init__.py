"""Feature codes, which find documents with the same characters around a full stop."""
