"""What the OpenAPI document promises, tried by Schemathesis."""
