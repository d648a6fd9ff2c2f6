"""What people keep beside the data: annotations of days, saved views, and links that share a page."""
