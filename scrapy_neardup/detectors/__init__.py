"""Detectors: which fingerprints a document has, and by which index earlier documents are found from them.

They propose and may be generous; `verify` decides.
"""

from ..papers.concepts.dwdcs import DWDCS, DWSWN
from .detector import Detector, checked
from .exact import Exact
from .feature_code import FeatureCode
from .imatch import IMatch
from .shingle import Shingle
from .simhash import SimHash

__all__ = ["DWDCS", "DWSWN", "Detector", "Exact", "FeatureCode", "IMatch", "Shingle", "SimHash", "checked"]
