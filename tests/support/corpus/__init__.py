"""Bad input: what no stream may stop for. `<kind>/cases.json` are written by hand, `generated.py` makes the rest."""
