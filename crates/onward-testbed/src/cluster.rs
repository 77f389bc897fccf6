//! Real PostgreSQL servers for tests: a private cluster in a temporary directory that is removed
//! when the process that started it ends, even if it is killed.
//!
//! It uses PostgreSQL's programs (`initdb`, `pg_ctl`, `psql`) and no driver, because the crates
//! under test bring their own. `supervisor.sh` is the process that outlives a killed test and
//! removes its cluster.

mod address;
mod citus;
mod pooler;
mod programs;
mod server;

use std::io::{Write as _, stderr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use address::Address;
pub use citus::{CITUS, distribute_due_times, with_citus_path};
pub use pooler::Pooler;
use server::Server;

/// The variable with the URL of a running server for [`Cluster::shared`]: `postgres://…`. The user
/// must be allowed to create databases. `script/test` sets it.
pub const URL_VARIABLE: &str = "ONWARD_TEST_POSTGRES";

/// The variable with the directory of the programs of a PostgreSQL with pgvector. `script/test`
/// sets it if such a server is available.
pub const PGVECTOR: &str = "ONWARD_TEST_PGVECTOR";
/// Like [`PGVECTOR`], for a pgvector version that is too old.
pub const OLD_PGVECTOR: &str = "ONWARD_TEST_OLD_PGVECTOR";

/// The variable with the URL of a database on the coordinator of a Citus cluster, to which its
/// workers were added. The workers must reach the coordinator at the host and port of the URL. The
/// user must be a superuser that can log in to all nodes without a password.
pub const DISTRIBUTED: &str = "ONWARD_TEST_DISTRIBUTED";

/// A running PostgreSQL server, with `fsync` on as in production.
#[derive(Debug)]
pub struct Cluster {
    address: Address,
    /// `None` for the shared cluster, which must not be stopped.
    own: Option<Server>,
    /// The nodes of a Citus cluster, the coordinator first; empty for a single server.
    nodes: Vec<Address>,
}

impl Cluster {
    /// The cluster shared by all tests of this process: the server in [`URL_VARIABLE`], or one that
    /// is started at the first call and ends with this process.
    ///
    /// # Panics
    ///
    /// If PostgreSQL is not installed or does not start.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<(Cluster, Option<Server>)> = OnceLock::new();
        let (cluster, _) = SHARED.get_or_init(|| {
            let configured = std::env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty());
            let (address, server) = if let Some(url) = configured {
                let address = Address::parse(&url).unwrap_or_else(|| {
                    panic!("invalid `{URL_VARIABLE}`: `{url}`, expected `postgres://user@host:port/name`")
                });
                (address, None)
            } else {
                let server = start_server();
                (Address::local(server.port()), Some(server))
            };
            let nodes = Vec::new();
            let cluster = Self {
                address,
                own: None,
                nodes,
            };
            (cluster, server)
        });
        cluster
    }

    /// A private cluster, for tests that stop and restart it. Dropping it stops and removes it.
    ///
    /// # Panics
    ///
    /// If PostgreSQL is not installed or does not start.
    #[must_use]
    pub fn start() -> Self {
        let server = start_server();
        Self {
            address: Address::local(server.port()),
            own: Some(server),
            nodes: Vec::new(),
        }
    }

    /// A copy of this private cluster with the next timeline: after a failover, this one is the former
    /// primary, and the copy the present one. Restarts this one.
    ///
    /// # Panics
    ///
    /// On the shared cluster, or if PostgreSQL does not start.
    #[must_use]
    pub fn promoted_copy(&self) -> Self {
        let programs = programs::find();
        let copy = programs.and_then(|programs| Server::start_promoted_copy(programs, self.own()));
        let server = unwrap_or_panic(copy);
        Self {
            address: Address::local(server.port()),
            own: Some(server),
            nodes: Vec::new(),
        }
    }

    /// A private cluster that uses the programs in the directory given by a variable. Prints a
    /// message and returns `None` if the variable is not set.
    ///
    /// # Panics
    ///
    /// If the server does not start.
    #[must_use]
    #[allow(
        clippy::print_stdout,
        reason = "skipped tests must be visible in the output"
    )]
    pub fn start_from_env(variable: &str) -> Option<Self> {
        let Some(bin) = std::env::var_os(variable).filter(|bin| !bin.is_empty()) else {
            println!(
                "skipped: `{variable}` is not set; run `script/pgvector` to install such a server"
            );
            return None;
        };
        let server = unwrap_or_panic(programs::at(bin.into()).and_then(Server::start));
        Some(Self {
            address: Address::local(server.port()),
            own: Some(server),
            nodes: Vec::new(),
        })
    }

    /// The Citus cluster in [`DISTRIBUTED`], shared by all tests of this process. Prints a message
    /// once and returns `None` if the variable is not set.
    ///
    /// # Panics
    ///
    /// If the URL is invalid or its database has no workers.
    #[must_use]
    pub fn distributed() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| {
            let url = std::env::var(DISTRIBUTED)
                .ok()
                .filter(|url| !url.is_empty());
            let Some(url) = url else {
                // `println!` and `eprintln!` would be captured with the output of the test.
                let skipped = "skipped tests on a distributed database";
                writeln!(stderr(), "{skipped}: `{DISTRIBUTED}` is not set").ok();
                return None;
            };
            let address =
                Address::parse(&url).unwrap_or_else(|| panic!("invalid `{DISTRIBUTED}`: `{url}`"));
            // The catalog need not contain the coordinator, whose group is 0.
            let question = "SELECT nodename || ':' || nodeport FROM pg_dist_node \
                WHERE groupid <> 0 AND isactive AND noderole = 'primary' ORDER BY groupid";
            let workers = unwrap_or_panic(psql(&url, question));
            let workers = workers.lines().map(|node| address.at(node));
            let nodes: Vec<Address> = std::iter::once(address.clone()).chain(workers).collect();
            assert!(nodes.len() > 1, "`{DISTRIBUTED}` has no workers: `{url}`");
            Some(Self {
                address,
                own: None,
                nodes,
            })
        });
        shared.as_ref()
    }

    /// Creates an empty database with a unique name and returns its URL.
    ///
    /// # Panics
    ///
    /// If it cannot be created.
    #[must_use]
    pub fn database(&self) -> String {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        static FIRST_AT: OnceLock<u128> = OnceLock::new();
        // Process ids are reused, and the configured server may contain databases of earlier runs.
        let first_at = FIRST_AT.get_or_init(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.unwrap_or_default().as_millis()
        });
        let process = std::process::id();
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let name = format!("onward_{first_at}_{process}_{number}");
        // `template0` allows no connections, which would make the copy fail.
        let create = format!("create database {name} template template0 encoding 'UTF8'");
        let created = if self.nodes.is_empty() {
            psql(&self.url("postgres"), &create)
        } else {
            self.create_on_nodes(&name, &create)
        };
        if let Err(error) = created {
            panic!("cannot create database `{name}`: {error}");
        }
        self.url(&name)
    }

    /// Creates a database on all nodes, and connects them in it.
    fn create_on_nodes(&self, name: &str, create: &str) -> Result<String, String> {
        // Nodes cannot be added to two databases concurrently.
        static ADDING: Mutex<()> = Mutex::new(());
        let _adding = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
        for node in &self.nodes {
            psql(&node.database_url("postgres"), create)?;
            psql(&node.database_url(name), "create extension citus")?;
        }
        let mut added = String::new();
        for (place, node) in self.nodes.iter().enumerate() {
            let (host, port) = node.host_and_port();
            let add = match place {
                0 => format!("select citus_set_coordinator_host('{host}', {port})"),
                _ => format!("select citus_add_node('{host}', {port})"),
            };
            added = psql(&self.url(name), &add)?;
        }
        Ok(added)
    }

    /// The URL of a database of this cluster, which need not exist.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        self.address.database_url(database)
    }

    /// Crashes the server: connections break, and uncommitted data is lost.
    ///
    /// # Panics
    ///
    /// On the shared cluster, or if the server does not stop.
    pub fn stop(&self) {
        unwrap_or_panic(self.own().stop());
    }

    /// Restarts the server on the same port and returns when it accepts connections. A running
    /// server is crashed first, as by [`stop`](Self::stop).
    ///
    /// # Panics
    ///
    /// On the shared cluster, or if the server does not start.
    pub fn restart(&self) {
        unwrap_or_panic(self.own().restart());
    }

    /// The log of the server.
    ///
    /// # Panics
    ///
    /// On the shared cluster, or if the log cannot be read.
    #[must_use]
    pub fn log(&self) -> String {
        unwrap_or_panic(self.own().log())
    }

    fn own(&self) -> &Server {
        self.own
            .as_ref()
            .unwrap_or_else(|| panic!("cannot stop the shared cluster: use `Cluster::start()`"))
    }
}

/// The output of `psql` for one or more statements: one row per line, columns separated by `|`.
///
/// # Errors
///
/// The error output of `psql`.
///
/// # Panics
///
/// If `psql` is not installed.
pub fn psql(url: &str, sql: &str) -> Result<String, String> {
    psql_each(url, &[sql])
}

/// Like [`psql`], with several messages in one session.
///
/// # Errors
///
/// The error output of `psql`.
///
/// # Panics
///
/// If `psql` is not installed.
pub fn psql_each(url: &str, messages: &[&str]) -> Result<String, String> {
    let mut command = unwrap_or_panic(programs::find()).command("psql");
    command.args([
        "--no-psqlrc",
        "--no-password",
        "--quiet",
        "--tuples-only",
        "--no-align",
        "--set=ON_ERROR_STOP=1",
    ]);
    for message in messages {
        command.args(["--command", message]);
    }
    unwrap_or_panic(programs::run(command.arg(url)))
}

fn start_server() -> Server {
    unwrap_or_panic(programs::find().and_then(Server::start))
}

fn unwrap_or_panic<T>(result: Result<T, String>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
