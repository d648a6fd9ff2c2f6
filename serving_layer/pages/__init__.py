"""The web pages, rendered in the API process from the same services as REST, so both show the same numbers."""
