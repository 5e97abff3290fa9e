# Redis: its own benchmark's commands.
prepare() { :; }
serve() { exec redis-server --port "$PORT" --bind 127.0.0.1 --save '' --appendonly no --dir "$PWD"; }
ready() { redis-cli -p "$PORT" ping; }
load() { while :; do redis-benchmark -p "$PORT" -q -n 50000 -c 20 -d 100 -r 100000; done; }
