"""Traced values that would share memory in NumPy: an assignment to such a value is refused."""

from __future__ import annotations

from symad.core.dims import format_shape
from symad.errors import TraceError
from symad.tracing.proxies.sessions import SESSION
from symad.tracing.proxies.wrapped import Wrapped
from symad.tracing.users_line import users_line

VIEW = "a view"
"""`Wrapped._views` of a reshaped form of another value; other values store their reshaped forms there."""


def check_owned(y: Wrapped, what: str) -> None:
    """Refuse an assignment that in NumPy would change other values as well.

    Args:
        y: the value that is assigned to.
        what: the operation, for the message.

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
