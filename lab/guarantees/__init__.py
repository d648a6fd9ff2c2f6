"""Delivery guarantees shown on a real broker, by breaking what they depend on (`galatea prove`)."""
