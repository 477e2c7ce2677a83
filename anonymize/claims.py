"""What a certificate claims of a model, as data: the parameters as they were written, and the input's distribution."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from anonymize.certificate import (
    Claims,
    ClosenessClaim,
    DisclosureClaim,
    DiversityClaim,
    LevelsClaim,
    LikenessClaim,
    SensitivityClaim,
    ShareClaim,
    Written,
)
from anonymize.models import (
    AlphaK,
    BetaLikeness,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    Model,
    PSensitive,
    RecursiveDiversity,
    Requirements,
    SensitiveLevels,
    TCloseness,
)
from anonymize.models.rationals import Rational, exact
from anonymize.tables import Table
from link.errors import ConfigurationError

Claim = tuple[str, Any]  # a field of `Claims`, and an entry of it


def claims_of(requirements: Requirements | None, table: Table | None) -> Claims:
    """The claims of a release that meets requirements.

    Args:
        requirements: None where a release claims no condition, as after identity replacement.
        table: The input, whose order of values ordered distances need; None if nobody has it any more.

    Raises:
        ConfigurationError: A model is unknown here, or t-closeness is claimed without a table.
    """
    if requirements is None:
        return Claims(k=None)
    entries: dict[str, list[Any]] = {}
    given = [model.k for model in requirements.models if isinstance(model, KAnonymity)]
    for model in requirements.models:
        if not isinstance(model, KAnonymity):
            field, claim = _claim(model, table)
            entries.setdefault(field, []).append(claim)
    return Claims(k=max(given, default=requirements.k), **entries)


def written(value: Rational) -> Written:
    """A parameter as JSON holds it without changing it: a number, or the text of a fraction that no decimal writes."""
    number = exact(value, "A parameter")
    if number.denominator == 1:
        return int(number)
    return float(number) if Fraction(repr(float(number))) == number else str(number)


def _claim(model: Model, table: Table | None) -> Claim:
    match model:
        case DistinctDiversity():
            return "l", DiversityClaim(kind="distinct", value=model.l, column=model.column)
        case EntropyDiversity():
            return "l", DiversityClaim(kind="entropy", value=model.l, column=model.column)
        case RecursiveDiversity():
            return "l", DiversityClaim(kind="recursive", value=model.l, column=model.column, c=written(model.c))
        case TCloseness():
            if table is None:
                raise ConfigurationError("t-closeness to a table is claimed, but there is no table.")
            return "t", _closeness(model, table)
        case PSensitive():
            return "p", SensitivityClaim(value=model.p, columns=list(model.columns))
        case AlphaK():
            values = None if model.values is None else list(model.values)
            return "alpha", ShareClaim(value=written(model.alpha), column=model.column, values=values)
        case SensitiveLevels():
            levels = [list(level) for level in model.levels]
            weights = None if model.weights is None else list(model.weights)
            return "levels", LevelsClaim(value=model.h, column=model.column, levels=levels, weights=weights)
        case BetaLikeness():
            return "beta", LikenessClaim(value=written(model.beta), column=model.column, enhanced=model.enhanced)
        case DeltaDisclosure():
            return "delta", DisclosureClaim(value=written(model.delta), column=model.column)
    raise ConfigurationError(f"A certificate has no form for the model {model.name}.")


def _closeness(model: TCloseness, table: Table) -> ClosenessClaim:
    column = table.sensitive_column(model.column)
    order, positions, paths = None, None, None
    if model.distance == "ordered":
        order = list(column.texts)
        positions = column.numbers.tolist() if model.ground == "value" else None
    if model.hierarchy is not None:
        hierarchy, leaves = model.hierarchy, model.hierarchy.align(column)
        paths = {
            text: [hierarchy.label(level, int(leaf)) for level in range(hierarchy.height + 1)]
            for text, leaf in zip(column.texts, leaves, strict=True)
        }
    return ClosenessClaim(
        distance=model.distance,
        value=written(model.t),
        column=model.column,
        order=order,
        positions=positions,
        paths=paths,
    )
