"""Table that counts up, with 40 numbers per second."""


def create_number_table(tables, first_number, columns):
    """Create the table ``numbers``: the number ``n``, starting at a first number, and columns computed from it."""
    tables.execute_sql(
        f"CREATE TEMPORARY TABLE numbers (n BIGINT, {columns}) WITH ('connector' = 'datagen',"
        f" 'rows-per-second' = '40', 'fields.n.kind' = 'sequence', 'fields.n.start' = '{first_number}',"
        f" 'fields.n.end' = '{first_number + 6000}')"
    )
