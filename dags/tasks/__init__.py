"""What the DAGs are made of."""
