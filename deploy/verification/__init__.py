"""`galatea verify`: what readers are shown beside a full recompute."""

from deploy.verification.verification import Verdict, Verification

__all__ = ["Verdict", "Verification"]
