"""Files to rows of the scan, without a store."""
