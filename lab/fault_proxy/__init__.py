"""A tap before a broker: harm to single requests on the wire, for experiments and drills."""

from lab.fault_proxy.kafka_frames import Api
from lab.fault_proxy.proxy import Action, Rule, Tap

__all__ = ["Action", "Api", "Rule", "Tap"]
