"""The texts of the pages in all languages."""

from itertools import combinations

import pytest

from serving_layer.pages.language import LANGUAGES, Language
from tests.support.catalogue import faults, texts, translated


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_every_text_has_a_translation_with_all_of_its_values(language: Language) -> None:
    assert list(faults(language, texts())) == []


ALIKE = {"Id", "Id:", "Product", "Type"}
"""Words that two of the languages write alike, and English does not."""


@pytest.mark.parametrize(("one", "other"), list(combinations(LANGUAGES[1:], 2)))
def test_no_text_is_in_another_language(one: Language, other: Language) -> None:
    in_one, in_other = translated(one), translated(other)
    pairs = [(each, in_other.get(each.id, each.context)) for each in in_one if each.id]

    alike = {each.id for each, same in pairs if same is not None and each.string == same.string != each.id}

    assert {text for text in alike if isinstance(text, str)} - ALIKE == set()
