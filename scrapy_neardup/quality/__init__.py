"""Measure verdicts on labelled sets, and learn thresholds from them."""
