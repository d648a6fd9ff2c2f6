"""A tap before a broker: harm to single requests on the wire, for experiments and drills."""

from lab.fault_proxy.frame import Api
from lab.fault_proxy.rule import Action, Rule
from lab.fault_proxy.tap import Tap

__all__ = ["Action", "Api", "Rule", "Tap"]
