"""How good verdicts are on labelled sets, and thresholds learned from them."""
