"""The learners, one module an algorithm. Importing this package registers them."""

from dropin.core.registry import register_learner
from dropin.learners import ciao, dgn, gnn, gpl, maddpg, ql

__all__: list[str] = []

for _module in (gpl, ql, gnn, dgn, maddpg, ciao):
    for _spec in _module.SPECS:
        register_learner(_spec)
