"""Which data readers see: the pointer, publications, generations and recomputes."""
