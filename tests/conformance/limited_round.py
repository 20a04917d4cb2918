"""A round that stops where Kafka's cleaner would whose map takes so many keys.

python -m tests.conformance.limited_round KEYS LOG_DIR TOPIC_CONFIGS NOW_MS KAFKA
"""

import sys

from compactor import api
from compactor.outcome.exit_codes import ending_of_report


def main(keys: str, log_dir: str, topic_configs: str, now_ms: str, kafka: str) -> int:
    rules = api.Rules(topic_configs=topic_configs, as_of=int(now_ms), kafka=kafka, any_clock=True)
    options = api.RunOptions(map_capacity=int(keys), drop_null_keys=True)
    return ending_of_report(api.run(log_dir, rules, options)).exit_code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
