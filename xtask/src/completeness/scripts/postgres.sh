# PostgreSQL: pgbench's transactions and some queries that read more. It refuses to run as root.
postgres=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups env HOME="$PWD/pg" "$@"; }
prepare() {
    mkdir pg
    chown postgres pg
    cd pg
    as_postgres "$postgres/initdb" -D db -A trust -U postgres
    cat > queries.sql <<'END'
SELECT bid, count(*), sum(abalance), string_agg(substr(filler, 1, 1), '') FROM pgbench_accounts
    WHERE aid % 7 = 0 GROUP BY bid ORDER BY 3;
SELECT count(*) FROM pgbench_accounts a JOIN pgbench_tellers t ON a.bid = t.bid WHERE a.aid < 20000;
END
}
serve() {
    cd pg
    exec setpriv --reuid=postgres --regid=postgres --clear-groups "$postgres/postgres" -D db -k "$PWD" -c listen_addresses=
}
ready() { "$postgres/pgbench" -h "$PWD/pg" -U postgres -i -s 3 postgres; }
load() {
    "$postgres/pgbench" -h "$PWD/pg" -U postgres -c 3 -T 3600 -f pg/queries.sql@1 -b tpcb-like@50 -b select-only@100 -n postgres
}
