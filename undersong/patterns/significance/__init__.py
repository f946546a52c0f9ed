"""How sure a finding is: permutation tests, noise resampling, false-discovery rate."""
