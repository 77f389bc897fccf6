# The process that keeps one cluster. It starts and stops the server as its standard input says,
# a line at a time, and answers each line with an exit status. When the input ends, because the
# test is done, has panicked or was killed, it stops the server and removes every trace.
# Doing one thing at a time is the point: there is no moment in which the test can die and leave
# something half started behind.
#
# Run by server.rs: sh -c "$(cat keeper.sh)" keeper BIN MEMORY, as a user for whom the server works.
# MEMORY is `little`, for tests, or `shipped`: as much as a server takes by itself.
bin=$1
memory=$2

# Nobody may be left to read an answer; and what is meant for the test is not meant for this.
trap '' PIPE HUP INT TERM

# The temporary directory of the user who tests may be closed to the one who runs the server.
dir=$(mktemp -d "${TMPDIR:-/tmp}/onward-pg.XXXXXXXX" 2>/dev/null || mktemp -d /tmp/onward-pg.XXXXXXXX) || exit
echo "$dir"

# --no-sync is about these first files only; what a test commits is synced as in earnest.
create() {
    "$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --no-locale --no-sync || return
    cat >>"$dir/data/postgresql.conf" <<'EOF'
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = on
max_connections = 200
EOF
    [ "$memory" = shipped ] || cat >>"$dir/data/postgresql.conf" <<'EOF'
shared_buffers = 16MB
max_wal_size = 256MB
EOF
}

start() { # port
    "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -o "-p $1" -w start
}

stop() {
    [ ! -e "$dir/data/postmaster.pid" ] || "$bin/pg_ctl" -D "$dir/data" -m immediate -w stop
}

while read -r order port; do
    case $order in
        create) create ;;
        start) start "$port" ;;
        stop) stop ;;
    esac >>"$dir/log" 2>&1
    echo $?
done
stop >>"$dir/log" 2>&1
rm -rf "$dir"
