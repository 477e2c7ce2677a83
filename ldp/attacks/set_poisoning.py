"""Poisoning of set-valued protocols: the same attacks where users pad their sets and report one item of them.

An estimate is l times what the oracle says, and so is what a fake report adds to it; a genuine user's report speaks of
one of l items, a fake one of any that the attacker likes. With the oracle's S, p and q the gain is
β·(l·(S − r·q)/(p − q) − f): the longer sets are padded, the stronger the attack. Protocols that mine sets by padding
and sampling in phases (LDPMiner, SVIM, SVSM) are attacked phase by phase, each by a part of the fake users.

    RPA   reports that are uniform over what clients can send
    RIA   the set of all targets, after which the fake user keeps to the protocol
    MGA   reports that support as many targets as can be, as if a target had been drawn

Source: Cao, Jia and Gong, "Data Poisoning Attacks to Local Differential Privacy Protocols", USENIX Security 2021, for
the attacks; the gain follows from the estimator of Wang, Li and Jha, "Locally Differentially Private Frequent Itemset
Mining", S&P 2018.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from crypto.primitives.randomness import Randomness
from ldp.attacks.poisoning import Attack, RandomItem, checked_targets, overall_gain
from ldp.domain import Codes
from ldp.mechanism import some
from ldp.reports import Reports
from ldp.sets.padding import PaddingAndSampling
from link.errors import ConfigurationError


def craft(
    attack: Attack, mechanism: PaddingAndSampling, targets: ArrayLike, m: int, rng: Randomness | None = None
) -> Reports:
    """The reports of m fake users, well-formed: `mechanism.read` takes them.

    Args:
        attack: RPA, RIA or MGA.
        mechanism: The mechanism that is attacked.
        targets: Numbers of its candidates, each once.
        m: How many fake users.
        rng: The source of randomness.

    Raises:
        InputDataError: There is no target, one is unknown or named twice, or there is no fake user.
        ConfigurationError: A target is a dummy.
    """
    wanted, rng = _candidates(mechanism, targets), Randomness.from_os() if rng is None else rng
    if isinstance(attack, RandomItem):  # of the claimed set, padded, one is drawn
        drawn = rng.integers(max(len(wanted), mechanism.length), m).astype(np.int64)
        dummies = mechanism.width + np.minimum(drawn - len(wanted), mechanism.dummies - 1)
        claimed = np.where(drawn < len(wanted), wanted[np.minimum(drawn, len(wanted) - 1)], dummies)
        fields = mechanism.single.privatise(claimed, rng).fields
    else:
        fields = attack.craft(mechanism.single, wanted, m, rng).fields
    return Reports(mechanism.fingerprint, fields)


def gain(attack: Attack, mechanism: PaddingAndSampling, target_share: float, r: int, beta: float) -> float:
    """The expected growth of the targets' estimated frequencies, added up.

    Args:
        attack: RPA, RIA or MGA.
        mechanism: The mechanism that is attacked.
        target_share: The targets' true frequencies among genuine users, added up.
        r: How many targets.
        beta: The share of fake users among all.

    Raises:
        ConfigurationError: The share is none.
    """
    single, supported = mechanism.single, attack.supported(mechanism.single, r)
    if isinstance(attack, RandomItem):
        p, q = float(single.p), float(single.q)
        supported = r * q + min(1.0, r / mechanism.length) * (p - q)
    return overall_gain(single, supported, target_share, r, beta, mechanism.length)


def added(mechanism: PaddingAndSampling, fake: Reports, targets: ArrayLike) -> float:
    """The targets' frequencies, added up, as they would be estimated from fake reports alone.

    Args:
        mechanism: The mechanism that is attacked.
        fake: Fake reports.
        targets: Numbers of its candidates.

    Raises:
        InputDataError: There is no report, or a target is wrong.
        ConfigurationError: A target is a dummy.
    """
    wanted = _candidates(mechanism, targets)
    some(len(fake))
    return float(mechanism.unbiased(mechanism.tally(fake), len(fake))[wanted].sum() / len(fake))


def _candidates(mechanism: PaddingAndSampling, targets: ArrayLike) -> Codes:
    wanted = checked_targets(mechanism.single, targets)
    if wanted.max() >= mechanism.width:
        raise ConfigurationError(f"targets are candidates, 0 to {mechanism.width - 1}; the rest are dummies")
    return wanted
