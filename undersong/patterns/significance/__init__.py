"""How sure a finding is: permutation tests, noise resampling, false-discovery rate."""

from undersong.models import Record

DRAWS = 999  # shuffles per sequence with a finding: chance can be as low as .001
REPLICAS = 50  # noisy replicas per sequence with a finding: a share is known to about .07


class ResamplingConfig(Record, frozen=True, kw_only=True):
    """How much is drawn, from which seed; ``block`` above 1 shuffles runs of so many rows as one.

    Without draws there is no chance and no q, without replicas no stability.
    """

    draws: int = DRAWS
    replicas: int = REPLICAS
    block: int = 1
    seed: int = 0
