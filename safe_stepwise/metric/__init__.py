"""What the metric ``safe_stepwise`` computes; users import it from here.

A script that uses it ends at a mistake of its user with one line.
"""

from safe_stepwise.errors import tell_in_one_line
from safe_stepwise.metric.compute import answers_by_loop as answers_by_loop
from safe_stepwise.metric.compute import answers_given as answers_given
from safe_stepwise.metric.compute import checked_options as checked_options

tell_in_one_line()
