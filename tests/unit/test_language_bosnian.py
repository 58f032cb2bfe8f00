"""The fit of the weights that tell Bosnian from its neighbours."""

import numpy as np

from eval.language_bosnian import CLASSES, fit, rows

SENTENCES = {
    "hr": "Djeca su u srijedu vidjela kolodvor, a tvrtka je tijekom tjedna povećala plaće.",
    "sr": "Deca su u sredu videla stanicu, a preduzeće je tokom nedelje povećalo plate.",
    "bs": "Djeca su u srijedu vidjela stanicu, a preduzeće je tokom sedmice povećalo plate.",
}


def test_fitted_weights_tell_the_texts_that_they_were_fitted_on() -> None:
    given = rows({code: {"made": [text] * 400} for code, text in SENTENCES.items()})
    weights = fit(given)
    assert weights.shape == (2, 9)
    for (code, *_), part in given.items():
        odds = np.column_stack([part @ weights.T, np.zeros(len(part))])
        assert {CLASSES[place] for place in odds.argmax(axis=1)} == {code}
