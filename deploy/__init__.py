"""How the parts are wired and run: settings, processes, the local stack. Only this package reads the environment."""
