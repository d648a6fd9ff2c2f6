"""The speed layer: new events to provisional cells, within a second."""
