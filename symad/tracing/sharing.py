"""Which traced values would share memory in NumPy: an assignment to one that does is refused."""

from __future__ import annotations

from symad.core.dims import format_shape
from symad.core.users_line import users_line
from symad.errors import TraceError
from symad.tracing.sessions import SESSION
from symad.tracing.wrapped import Wrapped

VIEW = "a view"
"""What `Wrapped._views` is of a reshaped form of another value; else the reshaped forms of this one."""


def check_owned(y: Wrapped, what: str) -> None:
    """Refuse an assignment that in NumPy would change other values as well.

    Args:
        y: what is assigned to.
        what: what is done, for the message.

    Raises:
        TraceError: y is a reshaped or transposed form of another value, such a form of y is in use, or y
            belongs to another function.
    """
    views = getattr(y, "_views", None)
    if y._owner is not SESSION.get():
        reason = f"belongs to {y._owner.title}, around the function or step in which it is assigned to"
    elif views is VIEW:
        reason = "may be a view of another one, whose elements would change in NumPy as well"
    elif any(view() is not None for view in views or ()):
        reason = "has a view in use (a reshaped or transposed form), which would change in NumPy as well"
    else:
        return
    raise TraceError(
        f"{what} a traced value of shape {format_shape(y._value.shape)}{users_line()}: the "
        f"value {reason}; assign to a copy: y = y.copy()"
    )
