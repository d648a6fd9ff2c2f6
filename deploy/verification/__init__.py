"""`galatea verify`: what readers are shown beside a full recompute."""

from deploy.verification.sample import Sample
from deploy.verification.verification import Verdict, Verification

__all__ = ["Sample", "Verdict", "Verification"]
