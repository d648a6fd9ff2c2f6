"""HTTP: translates questions, hands them over, and says no as problem+json."""
