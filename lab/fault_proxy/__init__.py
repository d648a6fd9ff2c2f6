"""A TCP proxy in front of a broker that drops, rejects or delays single requests, for experiments and drills."""

from lab.fault_proxy.kafka_frames import Api
from lab.fault_proxy.proxy import Action, FaultProxy, Rule

__all__ = ["Action", "Api", "FaultProxy", "Rule"]
