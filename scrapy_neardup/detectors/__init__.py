"""Detectors, which compute the fingerprints of a document, and find earlier documents by these.

Detectors propose many candidates. `matching/matcher.py` decides on each.
"""

from .detector import Detector, Exact, IMatch, Shingle, SimHash, checked

__all__ = ["Detector", "Exact", "IMatch", "Shingle", "SimHash", "checked"]
