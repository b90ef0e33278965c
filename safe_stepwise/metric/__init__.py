"""The functions of the metric ``safe_stepwise``, to import from here.

A script that imports them ends at a user's mistake with one line, not a traceback.
"""

from safe_stepwise.errors import tell_in_one_line
from safe_stepwise.metric.compute import answers_by_loop as answers_by_loop
from safe_stepwise.metric.compute import answers_given as answers_given
from safe_stepwise.metric.compute import checked_options as checked_options

tell_in_one_line()
