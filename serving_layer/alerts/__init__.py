"""Services to change alert rules and to list alerts."""
