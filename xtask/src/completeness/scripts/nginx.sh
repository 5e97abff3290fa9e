# nginx: serving files, compressed, to ab.
prepare() {
    mkdir -p www logs
    seq 3000 > www/small.txt
    seq 60000 > www/large.txt
    cat > nginx.conf <<END
user root;
worker_processes 2;
pid nginx.pid;
error_log error.log;
events { worker_connections 256; }
http {
    access_log access.log;
    gzip on;
    gzip_types text/plain;
    client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
    types { text/plain txt; }
    server { listen 127.0.0.1:$PORT; root www; }
}
END
}
serve() { exec nginx -p "$PWD/" -c nginx.conf -g 'daemon off;'; }
ready() { ab -q -n 1 "http://127.0.0.1:$PORT/small.txt"; }
load() {
    while :; do
        ab -q -k -c 8 -n 20000 -H 'Accept-Encoding: gzip' "http://127.0.0.1:$PORT/small.txt"
        ab -q -c 8 -n 500 "http://127.0.0.1:$PORT/large.txt"
    done
}
