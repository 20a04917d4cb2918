"""A plan that is saved, to be reviewed and carried out later with the same rules and clock."""

import os
import stat
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import get_type_hints

from compactor.api.path_arguments import PROBLEM, log_dir_around, require_writable
from compactor.api.round_context import RoundContext
from compactor.errors import ConfigError, RefusedError, UsageError
from compactor.host.machine import version
from compactor.json_types import is_of_type
from compactor.outcome.json_values import to_json
from compactor.planning import saved_plan
from compactor.planning.expected import Expected
from compactor.planning.round_plan import RoundPlan
from compactor.planning.saved_plan import SavedPlan, reviewed_of
from compactor.reason_codes import ReasonCode
from compactor.settings.rules import KAFKAS_DEFAULTS, Order, Rules
from storage.files.local import LOCAL

_NONE = object()  # stands for a rule that the file does not have
_FILES = ("config", "topic_configs", "server_properties")  # that the rules name


def require_savable(path: str, rules: Rules, log_dirs: Sequence[str]) -> None:
    """Raise UsageError where a plan cannot be saved to a path, or its rules not be read again."""
    if not path.strip():
        raise UsageError("is empty; is a variable of the shell not set?", "save")
    found = log_dir_around(path, log_dirs)
    if found is not None:
        raise UsageError(f"inside of log directory {found}; {PROBLEM}", "save", path)
    require_writable("save", path)
    for name in _FILES:
        given = getattr(rules, name)
        if isinstance(given, str) and not _is_file(given):
            problem = "is no file, and the run of the saved plan has to read it again"
            raise UsageError(problem, name, given)


def save(
    path: str, plan: RoundPlan, rules: Rules, context: RoundContext, expected: Expected
) -> None:
    """Write a plan in one step, with what it was made by."""
    logs, retention = reviewed_of(plan)
    saved = SavedPlan(
        made_by=version(),
        saved_at_ms=context.started_at_ms,
        as_of_ms=plan.as_of_ms,
        is_as_of_given=context.is_as_of_given,
        log_dirs=tuple(os.path.abspath(log_dir.path) for log_dir in plan.log_dirs),
        kafka=_versions_of(context),
        rules=_rules_document(rules),
        expected=to_json(expected),
        logs=tuple(replace(log, log_dir=os.path.abspath(log.log_dir)) for log in logs),
        retention=tuple(replace(r, log_dir=os.path.abspath(r.log_dir)) for r in retention),
    )
    LOCAL.replace_file(os.path.abspath(path), saved_plan.document(saved))


def read(path: str, log_dirs: Sequence[str], rules: Rules) -> SavedPlan:
    """Read a plan that a run is to carry out; log_dirs and rules must be left out beside it.

    Raise UsageError if there are any, ConfigError if it is no plan of this version.
    """
    if log_dirs or replace(rules, kafka=None) != KAFKAS_DEFAULTS:
        given = "{}" if log_dirs else "an option for configuration, logs or clock"
        problem = f"the saved plan says that itself; leave out {given}"
        raise UsageError(problem, "plan", path, ["log_dirs"])
    try:
        saved = saved_plan.parse(LOCAL.read_bytes(path), path)
    except OSError as error:
        raise ConfigError(error.strerror or "", "plan", path) from error
    if rules.kafka is not None and set(saved.kafka.values()) != {rules.kafka}:
        of_plan = " and ".join(sorted(set(saved.kafka.values())))
        problem = f"was made with the answer of Kafka {of_plan}, not of {rules.kafka}"
        problem += ": plan again, or leave out {}"
        raise ConfigError(problem, "plan", path, ["kafka"])
    return saved


def rules_of(saved: SavedPlan, path: str) -> Rules:
    """Return the rules of a saved plan, with its clock."""
    types = get_type_hints(Rules)
    wrong = [name for name in types if not is_of_type(saved.rules.get(name, _NONE), types[name])]
    wrong += saved.rules.keys() - types.keys()
    if wrong:
        raise ConfigError(f"is a damaged plan (rules: {wrong[0]}): plan again", value=path)
    order = Order(saved.rules["order"])
    return Rules(**saved.rules | {"as_of": saved.as_of_ms, "order": order})


def as_reviewed(context: RoundContext, saved: SavedPlan) -> RoundContext:
    """Return a context limited to the ranges of a saved plan.

    Raise RefusedError where it was made with another Kafka's answer than a plan would be now.
    """
    for log_dir, kafka in _versions_of(context).items():
        if saved.kafka.get(log_dir) != kafka:
            raise RefusedError(
                f"the plan was made with the answer of Kafka {saved.kafka.get(log_dir)}, and "
                f"{log_dir} is by now of Kafka {kafka}: the broker's version has changed. Plan "
                "again. Nothing was changed",
                ReasonCode.CHANGED_MEANWHILE,
            )
    of_brokers = tuple(
        each._replace(config=replace(each.config, ceilings=saved.ceilings))
        for each in context.of_brokers
    )
    return context._replace(
        config=of_brokers[0].config,
        of_brokers=of_brokers,
        is_as_of_given=saved.is_as_of_given,
    )


def _versions_of(context: RoundContext) -> dict[str, str]:
    return {
        os.path.abspath(log_dir): each.config.kafka.version.name
        for each in context.of_brokers
        for log_dir in each.broker.log_dirs
    }


def _rules_document(rules: Rules) -> dict[str, object]:
    found = asdict(rules)
    for name in (*_FILES, "metadata"):
        if isinstance(found[name], str):
            found[name] = os.path.abspath(found[name])
    if isinstance(rules.as_of, datetime):
        found["as_of"] = str(rules.as_of)
    return found


def _is_file(path: str) -> bool:
    """Return whether a path is a file, or cannot be seen: then its reader reports the error."""
    try:
        return stat.S_ISREG(LOCAL.status(path).st_mode)
    except OSError:
        return True
