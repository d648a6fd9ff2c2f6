"""FACTS. Every event ever received, and how bytes become events."""
