"""Fitting the shipped models from labels; needs scikit-learn (the extra ``train``)."""
