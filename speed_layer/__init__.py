"""New facts to provisional cells, within a second."""
