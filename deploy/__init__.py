"""How Galatea is configured and run: settings, processes, the local stack. Only this package reads the environment."""
