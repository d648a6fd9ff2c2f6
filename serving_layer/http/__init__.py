"""How the REST interface listens: connections are bounded in bytes and in time before their requests reach the app."""
