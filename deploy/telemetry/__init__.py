"""What the deployment sends to other systems about itself: spans and lineage."""
