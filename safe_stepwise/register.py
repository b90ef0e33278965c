"""``python -m safe_stepwise.register``: the metric, found by its bare name."""

import sys

from safe_stepwise.errors import UserError
from safe_stepwise.metric.register import main as main
from safe_stepwise.metric.register import register as register
from safe_stepwise.metric.register import registered as registered
from safe_stepwise.store.terminal import guard_output, printable

if __name__ == "__main__":
    guard_output()
    try:
        main()
    except UserError as error:
        print("error:", printable(str(error)), file=sys.stderr)
        raise SystemExit(2) from None
