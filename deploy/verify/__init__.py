"""`galatea verify`: what readers are shown beside a full recompute."""

from batch_layer.verify.sample import Sample
from deploy.verify.verification import Verdict, Verification

__all__ = ["Sample", "Verdict", "Verification"]
