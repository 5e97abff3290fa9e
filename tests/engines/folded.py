"""Folded text out of tables of samples, added up by an engine of SQL.

python3 folded.py duckdb|chdb FILES
"""

import sys

engine, files = sys.argv[1:]
if engine == "duckdb":
    import duckdb

    rows = duckdb.sql(
        f"""
        SELECT array_to_string(list_prepend(coalesce(process, thread),
                   [frame.function for frame in list_reverse(stack)]), ';') AS line,
               sum(value) AS total
        FROM '{files}' WHERE outcome = 'recorded' GROUP BY line ORDER BY line
        """
    ).fetchall()
else:
    import chdb

    text = chdb.query(
        f"""
        SELECT arrayStringConcat(arrayPushFront(arrayMap(frame -> frame.1, arrayReverse(stack)),
                   coalesce(process, thread)), ';') AS line,
               sum(value) AS total
        FROM file('{files}', Parquet) WHERE outcome = 'recorded' GROUP BY line ORDER BY line
        FORMAT TSVRaw
        """
    )
    rows = [line.split("\t") for line in str(text).splitlines()]
for line, total in rows:
    print(line, total)
