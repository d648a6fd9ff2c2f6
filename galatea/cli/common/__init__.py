"""What several commands share: options, tables, and access to the REST interface."""
