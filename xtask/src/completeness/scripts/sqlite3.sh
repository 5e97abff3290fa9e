# SQLite: inserting, joining, sorting, searching.
prepare() {
    {
        echo 'CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER, c TEXT); CREATE INDEX tb ON t (b);'
        for round in $(seq 1000); do
            cat <<END
BEGIN;
INSERT INTO t (b, c) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
    SELECT (i * 7919) % 1000, printf('%d text of %x', i, i * $round) FROM n;
SELECT count(*), max(length(x.c)) FROM t x JOIN t y ON x.b = y.a WHERE x.c LIKE '%of%a%';
SELECT b, group_concat(substr(c, 1, 3)) FROM t GROUP BY b ORDER BY sum(a) DESC LIMIT 10;
DELETE FROM t WHERE a % 3 <> 0;
COMMIT;
END
        done
    } > work.sql
}
work() { exec sqlite3 work.db < work.sql; }
