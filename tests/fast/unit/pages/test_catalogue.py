"""The texts of the pages in all languages."""

import pytest

from serving_layer.pages.language import LANGUAGES, Language
from tests.support.catalogue import faults, texts


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_every_text_has_a_translation_with_all_of_its_values(language: Language) -> None:
    assert list(faults(language, texts())) == []
