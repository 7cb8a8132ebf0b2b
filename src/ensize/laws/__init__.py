"""Laws: `c + b·m^a`, and how one is found behind the points of a curve.

For a given exponent the rest of a law is a weighted linear regression, and so it is,
on log-log paper, for a given limit. Both methods are therefore a search along one
line, for all curves at once.

`paper` minimizes the objective of the paper's section *Experimental setup*. Wherever
points have noise it tends to 0 as c → −∞, so that its least value means nothing; the
answer is the lowest of its minima inside 0 < c < min y.

`robust` minimizes the relative residuals of the law itself, which do not degenerate,
with c ≥ 0 and b ≥ 0. The noise is unknown and profiled out, and a mild penalty keeps
the exponent near the published ones where the points leave it open.
"""

from ensize.laws.fits import fit, fit_many
from ensize.laws.methods import PRIOR
from ensize.laws.outcomes import Fit, Fits, PowerLaw, Status

__all__ = ["PRIOR", "Fit", "Fits", "PowerLaw", "Status", "fit", "fit_many"]
