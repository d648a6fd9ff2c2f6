"""A tap before a broker: harm to single requests on the wire, for experiments and drills."""

from deploy.tap.frame import Api
from deploy.tap.rule import Action, Rule
from deploy.tap.tap import Tap

__all__ = ["Action", "Api", "Rule", "Tap"]
