"""The batch layer: from events to corrected cells to one publication. It does not import the speed layer."""
