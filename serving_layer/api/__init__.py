"""HTTP: translates requests into calls of services, and errors into problem+json."""
