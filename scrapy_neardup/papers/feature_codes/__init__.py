"""Feature codes: documents with the same characters around a full stop."""
