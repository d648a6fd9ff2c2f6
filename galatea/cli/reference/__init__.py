"""The reference: files that the code writes about itself, so that they cannot say anything else."""

from galatea.cli.reference.files import files
from galatea.cli.reference.page import Page
from galatea.cli.reference.pages import pages

__all__ = ["Page", "files", "pages"]
