"""Local differential privacy: every value is perturbed where it lives, and only aggregates become accurate.

A mechanism has two halves. `privatise` runs beside the data and turns values into reports; an `Aggregator` adds reports
up and estimates. Reports and an aggregator's state can be written as bytes, and states of disjoint reports be merged.

    from ldp.aggregator import Aggregator
    from ldp.registry import oracle

    oue = oracle("oue", ["bread", "milk", "tea"], epsilon=1.0)
    reports = oue.privatise(["milk", "tea", "milk"])
    Aggregator(oue).add(reports).estimate().frequencies
"""
