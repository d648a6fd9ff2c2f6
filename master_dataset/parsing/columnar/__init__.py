"""The columnar reader: reads records of a batch column by column, wherever it is sure to read as `parse` does."""
