# Supervises one cluster. Reads commands from standard input, one per line, and prints the exit
# status of each. When the input ends, because the test has finished, panicked or was killed, it
# stops the server and removes the directory. Commands run one at a time, so the cleanup also works
# for a test that is killed during a command.
#
# Run by server.rs as a user that can run the server:
# sh -c "$(cat supervisor.sh)" supervisor BIN MEMORY
# MEMORY is `small` for tests, or `default` for PostgreSQL's default settings.
bin=$1
memory=$2

# There may be no reader for a response, and signals for the test must not stop the cleanup.
trap '' PIPE HUP INT TERM

# The server's user may not have access to the temporary directory of the test's user.
dir=$(mktemp -d "${TMPDIR:-/tmp}/onward-pg.XXXXXXXX" 2>/dev/null || mktemp -d /tmp/onward-pg.XXXXXXXX) || exit
echo "$dir"

# --no-sync applies only to the initial files; commits are synced as in production.
create() {
    "$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --no-locale --no-sync || return
    cat >>"$dir/data/postgresql.conf" <<'EOF'
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = on
max_connections = 200
EOF
    [ "$memory" = default ] || cat >>"$dir/data/postgresql.conf" <<'EOF'
shared_buffers = 16MB
max_wal_size = 256MB
EOF
}

# The recovery of the copy ends with a new timeline, as after a promotion.
copy() { # directory of another supervisor whose server is stopped
    cp -a "$1/data" "$dir/data" && touch "$dir/data/recovery.signal" || return
    cat >>"$dir/data/postgresql.conf" <<'EOF'
restore_command = 'false'
hot_standby = off
EOF
}

start() { # port
    "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -o "-p $1" -w start
}

stop() {
    [ ! -e "$dir/data/postmaster.pid" ] || "$bin/pg_ctl" -D "$dir/data" -m immediate -w stop
}

while read -r command argument; do
    case $command in
        create) create ;;
        copy) copy "$argument" ;;
        start) start "$argument" ;;
        stop) stop ;;
    esac >>"$dir/log" 2>&1
    echo $?
done
stop >>"$dir/log" 2>&1
rm -rf "$dir"
