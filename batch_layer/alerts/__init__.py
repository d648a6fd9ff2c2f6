"""After a publication: what was told of alerts is compared with corrected numbers, and corrections are asked for."""
