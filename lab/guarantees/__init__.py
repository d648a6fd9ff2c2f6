"""The proving ground: delivery guarantees shown on a real broker, by breaking what they rest on."""
