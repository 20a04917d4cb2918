"""Users of this machine, as a message or a shell may name them."""

import pwd


def user_name(number: int) -> str:
    """The name; where there is none, the number as `sudo -u` takes it: '#1001'."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"'#{number}'"
