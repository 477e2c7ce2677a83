"""How supports of itemsets that span parties are computed: engines behind one interface."""

from mining.joint.vertical.engines.interface import Addends, Engine, Naming
from mining.joint.vertical.engines.oblivious_transfer import ObliviousTransferEngine

__all__ = ["Addends", "Engine", "Naming", "ObliviousTransferEngine"]
