"""beartype as the tests use it.

An int may stand where a float is asked for (PEP 484), and so may a leaf that ``eqx.tree_at`` has
wrapped where an array is: it calls ``linear_leaves`` with such leaves to learn which ones are meant.
"""

from beartype import BeartypeConf, FrozenDict, beartype
from equinox._tree import _LeafWrapper
from jax import Array

conf = BeartypeConf(is_pep484_tower=True, hint_overrides=FrozenDict({Array: Array | _LeafWrapper}))
check = beartype(conf=conf)
