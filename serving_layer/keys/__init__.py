"""Who asks, and what they may: keys of tenants, each for some scopes."""
