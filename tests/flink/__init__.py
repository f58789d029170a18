"""Real Flink as the judge: it restores what we write, and what it says is compared value by value."""
