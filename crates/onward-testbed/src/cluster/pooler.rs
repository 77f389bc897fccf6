//! PgBouncer in front of a cluster.
//!
//! A shell runs it as long as its input pipe is open, so it ends with the test, even if the test is
//! killed.

use std::io::Read as _;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::programs::set_server_user;
use super::server::free_port;
use super::{Cluster, unwrap_or_panic};

/// Runs PgBouncer in a temporary directory until the input ends. PgBouncer removes neither its
/// files nor itself when its parent exits.
const RUN: &str = r#"
trap '' PIPE HUP INT TERM
dir=$(mktemp -d "${TMPDIR:-/tmp}/onward-bouncer.XXXXXXXX" 2>/dev/null || mktemp -d /tmp/onward-bouncer.XXXXXXXX) || exit
printf '%s\n' "$1" >"$dir/pgbouncer.ini"
PATH=$PATH:/usr/sbin
pgbouncer "$dir/pgbouncer.ini" >"$dir/log" 2>&1 &
pid=$!
while read -r _; do :; done
kill "$pid"
wait "$pid"
cat "$dir/log"
rm -rf "$dir"
"#;

/// A running PgBouncer. Dropping it stops it.
#[derive(Debug)]
pub struct Pooler {
    process: Child,
    port: u16,
    user: String,
}

impl Pooler {
    /// Starts PgBouncer in front of a cluster, with these lines in its configuration.
    ///
    /// # Panics
    ///
    /// If PgBouncer is not installed or does not start.
    #[must_use]
    pub fn start(cluster: &Cluster, settings: &[&str]) -> Self {
        let port = unwrap_or_panic(free_port());
        let (host, server_port) = cluster.address.host_and_port();
        let user = cluster.address.user().unwrap_or("postgres").to_owned();
        let configuration = format!(
            "[databases]\n* = host={host} port={server_port} user={user}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n{}",
            settings.join("\n")
        );
        let mut command = Command::new("sh");
        command
            .args(["-c", RUN, "pooler", &configuration])
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        unwrap_or_panic(set_server_user(&mut command));
        let process = command.spawn().expect("the shell was started");
        let mut pooler = Self {
            process,
            port,
            user,
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > deadline {
                let log = pooler.stop();
                panic!("PgBouncer did not start: {log}\nhint: run `apt-get install pgbouncer`");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        pooler
    }

    /// The URL of a database through PgBouncer.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!(
            "postgres://{}@127.0.0.1:{}/{database}",
            self.user, self.port
        )
    }

    /// Stops PgBouncer and returns its log.
    fn stop(&mut self) -> String {
        drop(self.process.stdin.take());
        let mut log = String::new();
        if let Some(stdout) = &mut self.process.stdout {
            let _ = stdout.read_to_string(&mut log);
        }
        let _ = self.process.wait();
        log
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.stop();
    }
}
