"""A benchmark of conversations written for the purpose: planted shapes, innocent look-alikes, ordinary talk."""
