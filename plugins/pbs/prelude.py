"""What Python 3.6 lacks of what Pliant's own modules use: stand-ins, no more than they need.

The build puts these into a hook in place of the standard library's (see pliant.hooks.bundle). This
file itself is written for 3.6 and is taken as it is.
"""

import enum


class StrEnum(str, enum.Enum):
    """enum.StrEnum of 3.11."""

    def __str__(self):
        return self.value  # str.__str__ itself is put aside by the enum of 3.6

    def __format__(self, how):
        return self.value.__format__(how)


def prod(numbers):
    """math.prod of 3.8."""
    result = 1
    for number in numbers:
        result *= number
    return result


def removeprefix(text, prefix):
    """str.removeprefix of 3.9."""
    return text[len(prefix) :] if text.startswith(prefix) else text


def removesuffix(text, suffix):
    """str.removesuffix of 3.9."""
    return text[: len(text) - len(suffix)] if suffix and text.endswith(suffix) else text


def isascii(text):
    """str.isascii of 3.7."""
    return all(ord(character) < 128 for character in text)


def dataclass(**_options):
    """dataclasses.dataclass of 3.7, always frozen and in order."""

    def made(cls):
        cls._names = tuple(cls.__dict__.get("__annotations__", ()))
        cls._defaults = {name: cls.__dict__[name] for name in cls._names if name in cls.__dict__}
        cls.__init__ = _init
        cls.__setattr__ = _refuse
        cls.__eq__ = lambda one, other: _compared(one, other, tuple.__eq__)
        cls.__lt__ = lambda one, other: _compared(one, other, tuple.__lt__)
        cls.__gt__ = lambda one, other: _compared(one, other, tuple.__gt__)
        cls.__hash__ = lambda one: hash(astuple(one))
        cls.__repr__ = _repr
        return cls

    return made


def _init(self, *values, **named):
    kept = self.__dict__
    kept.update(self._defaults)
    kept.update(zip(self._names, values))
    kept.update(named)
    if len(kept) != len(self._names) or len(values) > len(kept):
        raise TypeError(f"{type(self).__name__}: {', '.join(self._names)} are expected")


def _refuse(self, name, _value):
    raise AttributeError(f"{type(self).__name__}.{name} cannot be set")


def _compared(one, other, by):
    return by(astuple(one), astuple(other)) if type(other) is type(one) else NotImplemented


def _repr(self):
    pairs = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)
    return f"{type(self).__name__}({pairs})"


def astuple(one):
    """dataclasses.astuple of 3.7, for fields that are no dataclasses themselves."""
    return tuple(map(one.__dict__.__getitem__, one._names))


def replace(one, **changes):
    """dataclasses.replace of 3.7."""
    return type(one)(**{**one.__dict__, **changes})
