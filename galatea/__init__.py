"""What users touch: `galatea.client` asks the REST interface, `galatea.cli` is the command."""
