"""Feature codes: documents that have the same characters around a full stop."""
