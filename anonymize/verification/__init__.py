"""Independent verification: what a certificate claims is recomputed from the published rows alone.

Nothing here imports the models, the algorithms or the grouping of `anonymize`: a mistake there is not repeated here.
"""

from anonymize.verification.findings import Finding, Verification

__all__ = ["Finding", "Verification"]
