"""Forecasts: what larger ensembles will score, how sure that is, and what follows.

A law is fitted to the scores of the ensembles at hand and read beyond them. How far
it may be off is told by the laws that the pool shows without each of its networks.
Back-tests on large pools tell whether that is so.
"""

from ensize.forecasts.back_tests import back_test
from ensize.forecasts.outcomes import Forecast, Interval
from ensize.forecasts.outlook import forecast
from ensize.forecasts.trials import BackTest, BackTests

__all__ = ["BackTest", "BackTests", "Forecast", "Interval", "back_test", "forecast"]
