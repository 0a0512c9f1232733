"""Detectors, which compute the fingerprints of a document, and find earlier documents by these.

Detectors propose many candidates. `matching/evidence.py` decides on each.
"""

from ..papers.concepts.dwdcs import DWDCS, DWSWN
from ..papers.feature_codes.feature_code import FeatureCode
from .detector import Detector, checked
from .standard import Exact, IMatch, Shingle, SimHash

__all__ = ["DWDCS", "DWSWN", "Detector", "Exact", "FeatureCode", "IMatch", "Shingle", "SimHash", "checked"]
