"""Detectors: which fingerprints a document has, and by which index earlier documents are found from them.

They propose and may be generous; `verify` decides.
"""

from ..papers.concepts.dwdcs import DWDCS, DWSWN
from ..papers.feature_codes.feature_code import FeatureCode
from .detector import Detector, checked
from .standard import Exact, IMatch, Shingle, SimHash

__all__ = ["DWDCS", "DWSWN", "Detector", "Exact", "FeatureCode", "IMatch", "Shingle", "SimHash", "checked"]
