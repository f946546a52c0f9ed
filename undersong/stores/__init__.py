"""The stores: where conversations, scans, evaluations, agent histories and findings are kept."""
