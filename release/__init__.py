"""What makes a release: the package and its checks, and the checklist as a program. None of it ships."""
