"""The user interfaces: `galatea.client`, a client of the REST interface, and `galatea.cli`, the command."""
