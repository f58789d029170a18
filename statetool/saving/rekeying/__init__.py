"""Change of the keys of an operator: new keys from old ones, and what becomes of old keys that meet under one new key."""
