"""Integers as JSON Schema understands them, and the two kinds that callers give."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

__all__ = ["Integral", "Revision", "Seed"]


def _integral(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Integral = BeforeValidator(_integral)
"""Makes an integer field take 3.0 too. It stands after the bounds, or they go missing in the schema."""

# JSON numbers are exact up to here everywhere.
Revision = Annotated[int, Field(ge=0, le=2**53), Integral]
"""A revision of an episode; 0 is its start."""

Seed = Annotated[int, Field(ge=-(2**53), le=2**53), Integral]
"""Makes an episode's randomness and clock repeatable."""
