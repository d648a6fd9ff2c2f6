"""Reports: a day or a week of a tenant, over REST, as a page, and as the parts of a mail."""
