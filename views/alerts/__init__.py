"""Alert rules and alerts: the definitions that all layers share. No engine, no clock."""
