"""What is kept between requests, and under which key."""
