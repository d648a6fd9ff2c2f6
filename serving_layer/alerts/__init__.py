"""Rules of alerts as people change them, and alerts as people list them."""
