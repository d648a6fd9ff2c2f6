"""Authentication and authorization: API keys of tenants, each with scopes."""
