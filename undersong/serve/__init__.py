"""A web page and an HTTP API over one store: read findings, decide on them, audit a file that is dropped."""
