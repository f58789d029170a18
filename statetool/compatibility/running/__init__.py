"""Run of Flink and the classes of the new job: only they tell what code of the job does."""
