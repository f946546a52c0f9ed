"""A package of somebody else that adds to undersong by its entry points alone."""
