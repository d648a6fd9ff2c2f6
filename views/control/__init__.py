"""What readers are shown: the pointer and the publication it names."""
