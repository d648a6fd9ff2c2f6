"""The serving layer: answers queries from published cells and speed rows, merged per request."""
