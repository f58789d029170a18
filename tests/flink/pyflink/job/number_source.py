"""The table that counts: 40 numbers a second."""


def create_number_table(tables, first_number, columns):
    """Create the table ``numbers``: the number ``n`` and columns computed of it, from a first number on."""
    tables.execute_sql(
        f"CREATE TEMPORARY TABLE numbers (n BIGINT, {columns}) WITH ('connector' = 'datagen',"
        f" 'rows-per-second' = '40', 'fields.n.kind' = 'sequence', 'fields.n.start' = '{first_number}',"
        f" 'fields.n.end' = '{first_number + 6000}')"
    )
