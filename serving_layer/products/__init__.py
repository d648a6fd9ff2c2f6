"""Product masters: titles and categories of SKUs for queries and lists, and loading them over REST."""
