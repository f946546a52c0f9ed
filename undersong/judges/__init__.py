"""The judges: one module each; ``protocol`` says what a judge is and opens one by its name."""
