"""The sentences of a comparison's verdict, read word by word and held against summaries and tenants of its runs.

A sentence that is not known here, or says what does not follow from the figures, is an error. Nothing of the package is
used: which policies may be compared, which tie and which are worse is decided here again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from tests.verdict.plain_settings import COLUMNS, OWN, TIME, UNITS, Contradicted, Setting, demand, difference, shows


class Verdict:
    """The settings of one comparison at one load, against which sentences are held."""

    def __init__(self, settings: Sequence[Setting]) -> None:
        self.settings, self.by_label = settings, {one.label: one for one in settings}
        self.label = "|".join(sorted(map(re.escape, self.by_label), key=len, reverse=True))
        self.apps = any(one.value("apps_submitted") > 0 for one in settings)
        self.deciding = "jct_mean_s"
        if self.apps and sum(not math.isnan(one.value("app_jct_mean_s")) for one in self.able("apps")) > 1:
            self.deciding = "app_jct_mean_s"

    def able(self, kind: str) -> list[Setting]:
        """Return the settings that finished within 1 % of the greatest part."""
        most = max(one.done(kind) for one in self.settings)
        return [one for one in self.settings if one.done(kind) >= 0.99 * most]

    def ranked(self, name: str, among: Sequence[Setting] | None = None) -> list[Setting]:
        """Return the comparable settings with a value, least first."""
        able = self.able("apps" if name.startswith("app_") else "jobs")
        known = [one for one in able if not math.isnan(one.value(name)) and (among is None or one in among)]
        return sorted(known, key=lambda one: one.value(name))

    def tie(self, a: Setting, b: Setting, name: str) -> bool:
        """Return whether two settings tie."""
        return a is b or difference(a, b, name).tie or a.value(name) == b.value(name)

    def labels(self, text: str) -> list[Setting]:
        """Return the settings of `a, b and c`."""
        return [self.by_label[name] for name in re.findall(rf"(?:{self.label})(?=$|, | and )", text)]

    # ---- all sentences ---------------------------------------------------------------------------------------

    def check(self, warnings: Sequence[str], answer: str, certainty: str, more: Sequence[str]) -> None:
        """Raise Contradicted for the first sentence that does not follow."""
        known = self.ranked(self.deciding)
        for warning in warnings:
            self._warning(warning, is_tie="makes no difference" in answer)
        for one in self.settings:
            named = any(f"{one.label} finished only" in warning for warning in warnings)
            demand(
                named == any(one not in self.able(kind) for kind in ["jobs", *["apps"] * self.apps]),
                one.label,
                "left out",
            )
        if len(known) < 2:
            demand("finished" in answer or "can be compared" in answer, answer, "there is nothing to compare")
            return
        if "makes no difference" in answer:
            self._no_difference(answer, known)
        else:
            self._use(answer, certainty, known)
        for sentence in more:
            self._more(sentence)

    def _warning(self, text: str, *, is_tie: bool) -> None:
        if match := re.fullmatch(rf"({self.label}) finished only ([\d,.]+) of ([\d,.]+) (jobs|apps)(.*)", text):
            one, kind = self.by_label[match[1]], match[4]
            demand(one not in self.able(kind), text, "it finished as many as others")
            demand(shows(match[2], one.value(f"{kind}_finished")), text, one.value(f"{kind}_finished"))
            return
        idle = re.fullmatch(
            r"The cluster is too idle to tell policies apart: the jobs ask for ([\d.]+) % of it, and (do not wait|wait "
            rf"{TIME} at most on average) to their first start\. Queues, and with them differences, are to be expected "
            r"from about load ([\d.]+) on \(--load ([\d.]+)\)\.", text,
        )  # fmt: skip
        demand(idle is not None, text, "an unknown warning")
        assert idle is not None
        waits = [one.value("queueing_mean_s") for one in self.ranked(self.deciding)]
        longest = max((wait for wait in waits if not math.isnan(wait)), default=0.0)
        demand(is_tie, text, "policies differ")
        demand(
            self.settings[0].offered < 0.9 and shows(idle[1], 100 * self.settings[0].offered), text, "the offered load"
        )
        demand(longest == 0 if idle[3] is None else shows(idle[3], longest, UNITS[idle[4]]), text, longest)

    def _no_difference(self, answer: str, known: list[Setting]) -> None:
        match = re.fullmatch(
            rf"It makes no difference to the (average [a-z ]+): (.*) tie \({TIME}(?: to {TIME})?\)\."
            rf"(?: Of them, ({self.label}) treats tenants best\.)?", answer,
        )  # fmt: skip
        demand(match is not None, answer, "an unknown sentence")
        assert match is not None
        demand(match[1] == COLUMNS[self.deciding][0], answer, self.deciding)
        demand(set(map(id, self.labels(match[2]))) == set(map(id, known)), answer, "these tie")
        demand(all(self.tie(known[0], other, self.deciding) for other in known), answer, "no tie")
        demand(shows(match[3], known[0].value(self.deciding), UNITS[match[4]]), answer, "the least")
        last = (match[5], match[6]) if match[5] else (match[3], match[4])
        demand(shows(last[0], known[-1].value(self.deciding), UNITS[last[1]]), answer, "the most")
        if match[7]:
            least = {one.label: min((1.0, *one.large().values())) for one in known}
            demand(least[match[7]] == max(least.values()) > min(least.values()) + 0.1 - 1e-9, answer, least)

    def _use(self, answer: str, certainty: str, known: list[Setting]) -> None:
        head, aided, tail = answer.removeprefix("Use ").partition(" It knows durations, which a real cluster does not")
        chosen, end = self._recommendation(head, known)
        self._drawbacks(chosen, head[end:])
        demand(chosen.knows == bool(aided), answer, "whether it knows durations")
        unaided = [one for one in known if not one.knows]
        best = None
        if aided and unaided:
            text = tail.removeprefix(": of the policies that do not know them use ")
            demand(text != tail, answer, "the best that does not know durations is missing")
            best, end = self._recommendation(text, unaided)
            demand(end == len(text), answer, "more follows")
        elif aided:
            demand(tail == ", and so do all policies that are compared here.", answer, "all know durations")
        self._certainty(certainty, chosen, known, best, unaided)

    def _recommendation(self, text: str, known: list[Setting]) -> tuple[Setting, int]:
        """Return the recommended setting, and where the recommendation ends in the text."""
        noun = "apps take" if self.deciding.startswith("app_") else "jobs complete after"
        match = re.match(
            rf"({self.label}): {noun} {TIME} on average(?:, a tie with ((?:{self.label}|, | and )+?))?"
            rf"(?:, ([\d.]+) % sooner than under ({self.label}), (the next best|the alternative) \({TIME}\))?\.", text,
        )  # fmt: skip
        demand(match is not None, text, "an unknown recommendation")
        assert match is not None
        chosen, lowest, name = self.by_label[match[1]], known[0], self.deciding
        demand(chosen in known and shows(match[2], chosen.value(name), UNITS[match[3]]), text, chosen.value(name))
        first = [one for one in known if self.tie(lowest, one, name)]
        rest = [one for one in known if one not in first]
        equal = self.labels(match[4]) if match[4] else []
        demand({one.label for one in [chosen, *equal]} == {one.label for one in first}, text, "those that tie")
        demand(all(self.tie(chosen, one, name) for one in equal), text, "it does not tie with all of them")
        demand(not any(self.tie(chosen, one, name) for one in rest), text, "it ties with another")
        demand(bool(rest) == bool(match[6]), text, "whether there is another")
        if rest:
            second, least = rest[0].value(name), chosen.value(name)
            demand(match[6] == rest[0].label or self.by_label[match[6]].value(name) == second, text, rest[0].label)
            demand(shows(match[5], 100 * (1 - least / second)), text, 100 * (1 - least / second))
            demand(shows(match[8], second, UNITS[match[9]]), text, second)
            demand((match[7] == "the next best") == (len(rest) > 1), text, "how many others there are")
        return chosen, match.end()

    # ---- drawbacks -------------------------------------------------------------------------------------------

    def worse(self, chosen: Setting) -> set[str]:
        """Return the starred columns in which another is better than the chosen one, and no tie."""
        found = set()
        for name, (_, high) in COLUMNS.items():
            known = self.ranked(name)
            if name == self.deciding or chosen not in known:
                continue
            values = [one.value(name) for one in known]
            best = known[values.index(max(values) if high else min(values))]
            if not self.tie(best, chosen, name):
                found.add(name)
        return found

    def _drawbacks(self, chosen: Setting, text: str) -> None:
        words, worse = {what: name for name, (what, _) in COLUMNS.items()}, self.worse(chosen)
        if text == " No other measure here is worse for it.":
            demand(not worse, text, worse)
            demand(all(part >= 0.9 for part in chosen.large().values()), text, "tenants pay")
            return
        named = set()
        if price := re.match(r" The price: (.*?)\.(?= Also worse|$)", text):
            for part in price[1].split("; "):
                named.add(self._price(part, chosen))
            text = text[price.end() :]
        if text:
            listed = re.fullmatch(r" (?:Also worse|Worse) under it: (.*)\.", text)
            demand(listed is not None, text, "an unknown drawback")
            assert listed is not None
            named |= {words[what] for what in re.split(r", | and ", listed[1])}
        demand(named - {"tenants"} == worse, text, (named, worse))

    def _price(self, text: str, chosen: Setting) -> str:
        """Check one price, and return the measure it is about."""
        if text.startswith(("tenant ", "tenants ")):
            self._tenants(text, chosen)
            return "tenants"
        number = r"([\d,.]+(?:e-\d+)?)"
        times = rf"(never|once|{number} times)"
        patterns = {
            "jct_p99_s": rf"its slowest jobs take {TIME} \(99th percentile\), {TIME} under ({self.label})",
            "rho_themis_max": rf"its worst-treated job has ρ {number}, ({self.label}) keeps it to {number}",
            "cost_usd": rf"it costs \${number}, \${number} under ({self.label})",
            "preemptions": rf"it preempts {times}, ({self.label}) {times}",
        }
        name, match = next((n, m) for n, p in patterns.items() if (m := re.fullmatch(p, text)))
        other = self.by_label[next(group for group in match.groups() if group in self.by_label)]
        least, ranked = other.value(name), self.ranked(name)
        demand(least == ranked[0].value(name) and not self.tie(other, chosen, name), text, "the best of them")
        counts = {"never": "0", "once": "1"}
        pairs = {
            "jct_p99_s": ((1, 2), (3, 4)), "rho_themis_max": ((1, 0), (3, 0)), "cost_usd": ((1, 0), (2, 0)),
            "preemptions": ((1, 0), (4, 0)),
        }[name]  # fmt: skip
        for (place, unit), setting in zip(pairs, (chosen, other), strict=True):
            shown = counts.get(match[place], match[place].removesuffix(" times"))
            demand(shows(shown, setting.value(name), UNITS[match[unit]] if unit else 1.0), text, setting.value(name))
        return name

    def _tenants(self, text: str, chosen: Setting) -> None:
        short = sorted((part, name) for name, part in chosen.large().items() if part < 0.9)
        under = re.search(rf" \(under ({self.label}) (none|no larger tenant) gets less than (\d+) %\)$", text)
        if under:
            fair = self.by_label[under[1]]
            parts = fair.large() if under[2] == "no larger tenant" else {n: g / o for n, (g, o) in fair.parts().items()}
            demand(100 * min((1.0, *parts.values())) >= int(under[3]) - 1e-6, text, parts)
            text = text[: under.start()]
        more = re.search(r" and (\d+) more less than 90 %$", text)
        text = text[: more.start()] if more else text
        demand(len(short) == 3 + int(more[1]) if more else len(short) <= 3, text, short)
        for (part, name), piece in zip(short[:3], text.split(" ", 1)[1].split(", "), strict=True):
            found = re.fullmatch(rf"{re.escape(name)}(?: gets)? (\d+) %(?: of what it is owed)?", piece)
            demand(found is not None and 0 <= 100 * part - int(found[1]) + 1e-6 < 1.00001, piece, (name, part))

    # ---- certainty and further sentences ---------------------------------------------------------------------

    def _certainty(
        self, text: str, chosen: Setting, known: list[Setting], best: Setting | None, unaided: list[Setting]
    ) -> None:
        for one, among in ((chosen, known), (best, unaided)):
            others = [other for other in among if one is not None and not self.tie(other, among[0], self.deciding)]
            if one is None or not others:
                continue
            found = difference(one, others[0], self.deciding)
            if found.low is None or found.high is None:
                jobs = f"{int(one.value('jobs_submitted')):,}"
                demand(
                    f"This holds for these {jobs} jobs. How far other jobs would change it is not known: " in text,
                    text,
                    jobs,
                )
                draws = (
                    f"the {len(one.summaries)} seeds draw nothing and count as one"
                    if len(one.summaries) > 1
                    else "there is one seed"
                )
                demand(draws in text, text, draws)
            else:
                against = re.escape(others[0].label)
                ends = r"([+−][\d.]+) % to ([+−][\d.]+) %\."
                pattern = rf"Certain at 95 %, over (\d+) seeds: the difference to {against} is {ends}"
                match = re.search(pattern, text)
                demand(match is not None, text, pattern)
                assert match is not None
                demand(found.high < 0 or found.low > 0, text, "the interval includes 0")
                demand(
                    shows(match[2], 100 * found.low, slack=1e-3) and shows(match[3], 100 * found.high, slack=1e-3),
                    text,
                    found,
                )

    def _more(self, text: str) -> None:
        every = {
            r"Averages are of finished (jobs|apps): .*": self._finished,
            r"(.*) made the very same run: nothing in these jobs tells them apart\.": self._same,
            r"(.*) knows? durations, which a real cluster does not\.": self._knowing,
            r"Nothing is random(?: under (.*))?: the (\d+) seeds gave identical runs, and count as one\.": self._alike,
            rf"({self.label}) is the worst of (\d+) at what it is meant to keep small, the (.*): "
            r"(\S+)(?: (s|min|h|d))?, "
            rf"(\S+)(?: (s|min|h|d))? under ({self.label})\.": self._worst,
            r"([\d,]+) differences were judged at 95 %: .*": lambda match: None,
        }
        for pattern, check in every.items():
            if match := re.fullmatch(pattern, text):
                check(match)
                return
        raise Contradicted(f"{text!r}: an unknown sentence")

    def _finished(self, match: re.Match[str]) -> None:
        kind = match[1]
        for part in match[0].partition(": ")[2].removesuffix(".").split(". "):
            names, _, counts = part.partition(" finished ")
            for one in self.labels(names.removesuffix(" each")):
                done, of = re.match(r"([\d,.]+) of ([\d,.]+) ", counts).groups()  # type: ignore[union-attr]
                demand(
                    shows(done, one.value(f"{kind}_finished")) and shows(of, one.value(f"{kind}_submitted")),
                    part,
                    one.label,
                )

    def _same(self, match: re.Match[str]) -> None:
        first, *others = self.labels(match[1])
        demand(
            bool(others) and all(dict(one.summaries) == dict(first.summaries) for one in others),
            match[0],
            "they differ",
        )

    def _knowing(self, match: re.Match[str]) -> None:
        demand(
            {one.label for one in self.labels(match[1])} == {one.label for one in self.settings if one.knows},
            match[0],
            "",
        )

    def _alike(self, match: re.Match[str]) -> None:
        named = self.labels(match[1]) if match[1] else self.settings
        demand(all(one.one_run and len(one.summaries) == int(match[2]) for one in named), match[0], "seeds differ")
        demand(len(named) == sum(one.one_run for one in self.settings), match[0], "others draw nothing either")

    def _worst(self, match: re.Match[str]) -> None:
        name = next(n for n, what in OWN.items() if what == match[3])
        ranked = self.ranked(name)
        one, best = self.by_label[match[1]], self.by_label[match[8]]
        demand(
            len(ranked) == int(match[2]) and one is ranked[-1] and best.value(name) == ranked[0].value(name),
            match[0],
            name,
        )
        demand(not self.tie(one, ranked[-2], name), match[0], "it ties with another")
        for shown, unit, setting in ((match[4], match[5], one), (match[6], match[7], best)):
            demand(shows(shown.lstrip("$"), setting.value(name), UNITS.get(unit, 1.0)), match[0], setting.value(name))
