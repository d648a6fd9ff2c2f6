"""Texts that mean something to a database, a shell, a spreadsheet, a template or a browser: `cases.json`."""
