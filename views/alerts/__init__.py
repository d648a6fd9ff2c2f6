"""Rules, and what an alert is: said once, for whoever raises, keeps or audits alerts. No engine, no clock."""
