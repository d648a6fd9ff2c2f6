"""The checks of `galatea doctor`: one module per system that a deployment depends on."""
