"""The services for operators."""
