"""What is large, where and since when: sizes, counts, ages and timers, from the positions of entries. Values are not decoded."""
