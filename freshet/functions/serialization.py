"""Pickles a feature function by value, so that its module need not exist where it runs."""

from __future__ import annotations

import cloudpickle

from freshet.functions.base import FeatureFunction


def dump_function(function: FeatureFunction) -> bytes:
    """Pickles a feature function.

    A class from a table definition that ``load_table`` read, or from ``__main__``, travels by
    value; one from an installed package travels by name.

    Raises:
        TypeError: it is no feature function, or something in it can't be pickled.
    """
    if not isinstance(function, FeatureFunction):
        raise TypeError(
            f"{function!r} is no FeatureFunction; derive its class from FeatureFunction"
        )
    try:
        return bytes(cloudpickle.dumps(function))
    except Exception as e:
        raise TypeError(
            f"the feature function {type(function).__name__} can't be pickled: {e}; open files, "
            "connections and locks in prepare(), not in its constructor"
        ) from e


def load_function(pickled: bytes) -> FeatureFunction:
    """Unpickles a feature function.

    Raises:
        TypeError: something else was pickled.
        Exception: whatever its modules raise when they are imported.
    """
    function = cloudpickle.loads(pickled)
    if not isinstance(function, FeatureFunction):
        raise TypeError(f"expected a pickled FeatureFunction, found {type(function).__name__}")
    return function
