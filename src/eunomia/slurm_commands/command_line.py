"""The options of a command, as a table, and how its words are read by it: as getopt_long of Slurm's commands does.

Reference: SchedMD, the manual pages of the commands; getopt_long(3).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from eunomia.model.spelling_suggestions import nearest

VALUE, FLAG, MAYBE = "value", "flag", "maybe"  # it takes a value; takes none; takes one only as --name=value


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its names, whether it takes a value, and what it means here; "" = nothing."""

    long: str
    short: str = ""
    takes: str = VALUE
    help: str = ""
    env: str = ""  # variable that stands for it where it is not given


class HelpWanted(Exception):
    """A command was asked for its help, which this holds."""


class WrongUsage(ValueError):
    """Words that are no use of a command: the message says how to write them."""


@dataclass(slots=True)
class Given:
    """What was given: by long name; flags are "", and of a repeated option the last value counts."""

    command: str
    values: dict[str, str] = field(default_factory=dict)
    all_values: dict[str, list[str]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    ignored: dict[str, None] = field(default_factory=dict)  # options that mean nothing here

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: str = "") -> str:
        """Return the value of an option."""
        return self.values.get(name, default)

    def listed(self, name: str) -> list[str]:
        """Return the values of an option that takes lists with commas and may be repeated."""
        return [one.strip() for value in self.all_values.get(name, ()) for one in value.split(",") if one.strip()]

    def say_ignored(self) -> None:
        """Say once on stderr which options mean nothing here."""
        if self.ignored:
            say(self.command, f"{', '.join(self.ignored)}: not known here, ignored")


def say(command: str, text: str) -> None:
    """Write a message as Slurm's commands do."""
    print(f"{command}: {text}", file=sys.stderr)


def read_words(
    command: str, options: Iterable[Option], words: Sequence[str], *, intermixed: bool = True, into: Given | None = None
) -> Given:
    """Return what words give; with `intermixed` options may follow other words. Values that stand already stay.

    Raises WrongUsage for an option that is not in the table, with the most similar one.
    """
    table = {name: one for one in options for name in (f"--{one.long}", f"-{one.short}" if one.short else "") if name}
    found, before = into or Given(command), set(into.values if into else ())
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            found.words += rest
            break
        if not word.startswith("-") or word == "-":
            found.words.append(word)
            if not intermixed:
                found.words += rest
                break
            continue
        option, value = _option(command, table, word, rest)
        if option.long not in before:
            found.values[option.long] = value
            found.all_values.setdefault(option.long, []).append(value)
        if not option.help:
            found.ignored[f"--{option.long}"] = None
    return found


def typed(
    command: str, usage: str, options: Sequence[Option], words: Sequence[str], notes: Sequence[str] = (),
    *, intermixed: bool = True,
) -> Given:  # fmt: skip
    """Return what was typed; see `read_words`. Raises HelpWanted with its help where that is --help."""
    given = read_words(command, options, words, intermixed=intermixed)
    if "help" in given:
        raise HelpWanted(help_text(command, usage, options, notes))
    return given


def _option(command: str, table: Mapping[str, Option], word: str, rest: list[str]) -> tuple[Option, str]:
    """Return an option and its value; what follows in `rest` is taken from there."""
    if word.startswith("--"):
        name, has_value, value = word.partition("=")
        option = table.get(name) or _abbreviated(table, name)
        if option is None:
            raise WrongUsage(f"unrecognized option '{name}'; {nearest(name, [one for one in table if one[1] == '-'])}")
        if option.takes == FLAG and has_value:
            raise WrongUsage(f"option '{name}' doesn't allow an argument")
        if option.takes != VALUE or has_value:
            return option, value
    else:
        name, value = word[:2], word[2:]
        option = table.get(name)
        if option is None:
            raise WrongUsage(f"invalid option -- '{name[1:]}'; see {command} --help")
        if option.takes == FLAG and value:
            rest.insert(0, f"-{value}")
            return option, ""
        if option.takes != VALUE or value:
            return option, value.removeprefix("=")
    if not rest:
        raise WrongUsage(f"option requires an argument -- '{name.lstrip('-')}'")
    return option, rest.pop(0)


def _abbreviated(table: Mapping[str, Option], name: str) -> Option | None:
    """Return the one option that begins so."""
    begin = {one.long: one for key, one in table.items() if key.startswith(name) and len(name) > 2}
    return next(iter(begin.values())) if len(begin) == 1 else None


def help_text(command: str, usage: str, options: Iterable[Option], notes: Sequence[str] = ()) -> str:
    """Return what --help prints."""
    lines, without = [f"Usage: {command} {usage}", "", *notes, "", "Options that mean something here:"], []
    for one in options:
        if not one.help:
            without.append(f"--{one.long}")
            continue
        names = (f"-{one.short}, " if one.short else "    ") + f"--{one.long}" + ("" if one.takes == FLAG else "=…")
        lines.append(f"  {names:<28} {one.help}")
    if without:
        lines += ["", "Known, and ignored with a message:", *_wrapped(without)]
    return "\n".join(lines)


def _wrapped(names: Sequence[str]) -> list[str]:
    import textwrap

    return textwrap.wrap(", ".join(names), 78, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
