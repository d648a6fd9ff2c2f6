"""The reference: files that the code writes about itself, so that they cannot say anything else."""

from deploy.reference.files import files
from deploy.reference.page import Page
from deploy.reference.pages import pages

__all__ = ["Page", "files", "pages"]
