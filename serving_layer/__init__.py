"""Answers: published cells and speed rows, merged when somebody asks."""
