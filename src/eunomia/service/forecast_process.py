"""The process that computes forecasts: `python -m eunomia.service.forecast_process SITE`, see `child_process`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from eunomia.child_process import answer_frames
from eunomia.inputs.problems import InvalidInput
from eunomia.model.answers import InvalidAnswer
from eunomia.records.policy_call import PolicyFailed
from eunomia.service.followed_state import LogReader, SiteChanged
from eunomia.service.forecast_answers import ForecastAnswers
from eunomia.service.site import load_site
from eunomia.service.site_change import effective_site


def main(path: Path) -> None:
    """Answer questions, JSON objects, one by one; what cannot be answered is an object with `error` and `code`."""
    site = load_site(path)
    answers = ForecastAnswers(effective_site(LogReader(site.place), site))

    def answer(question: bytes) -> bytes:
        try:
            found = answers.answer(json.loads(question))
        except SiteChanged as error:
            found = {"error": str(error), "code": "site_changed"}
        except InvalidInput as error:
            one = error.problems[0]
            found = {"error": one.rule, "code": "invalid", "field": one.column, "value": one.value, "fix": one.fix}
        except (InvalidAnswer, PolicyFailed) as error:
            fix = "correct the policy, or choose another one"
            found = {"error": str(error), "code": "invalid", "field": "policy", "value": None, "fix": fix}
        return json.dumps(found, allow_nan=False).encode()

    answer_frames(answer)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
