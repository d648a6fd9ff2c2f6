"""Reports by mail and as PDF: who gets which, what was sent already, the mail server, and Chromium."""
