"""Write the requests and replies of state machines that answered rightly as training rows."""

from evaluators.transitions import export_transitions
from scripts.cli import command, run

main = command(export_transitions, module=__name__)

if __name__ == "__main__":
    run(main)
