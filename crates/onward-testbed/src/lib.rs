//! A real PostgreSQL for tests: a private cluster in a temporary directory, gone when the
//! process that started it ends, however it ends.
//!
//! It works through PostgreSQL's own programs (`initdb`, `pg_ctl`, `psql`) and brings no driver:
//! how the product speaks to a database is for the crates that are tested. They use this one as
//! a development dependency, and `walls.rs` in `onward` holds that nobody builds with it.
//!
//! `keeper.sh` is the process that outlives a killed test and cleans up after it. For a server
//! to try things out on, `cargo run -p onward-testbed`.

#![allow(
    clippy::panic,
    reason = "a test that has no database must fail, and say why"
)]

mod address;
mod programs;
mod server;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use address::Address;
use server::Server;

/// Where a server is that is already running, for [`Cluster::shared`]: `postgres://…`, with the
/// right to create databases. `script/test` sets it.
pub const VARIABLE: &str = "ONWARD_TEST_POSTGRES";

/// Where the programs of a PostgreSQL are that has pgvector, and of one whose pgvector is too old to be of
/// use. `script/test` sets them where it can get hold of such servers.
pub const PGVECTOR: &str = "ONWARD_TEST_PGVECTOR";
/// See [`PGVECTOR`].
pub const OLD_PGVECTOR: &str = "ONWARD_TEST_OLD_PGVECTOR";

/// A PostgreSQL that answers, with `fsync` on as in earnest.
#[derive(Debug)]
pub struct Cluster {
    address: Address,
    /// None where others use it too, who would not like to see it stop.
    own: Option<Server>,
}

impl Cluster {
    /// The one that all tests of this process share, started at the first call: the one that
    /// [`VARIABLE`] names, or else one that ends with this process.
    ///
    /// # Panics
    ///
    /// Where there is no PostgreSQL, or it does not start.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<(Cluster, Option<Server>)> = OnceLock::new();
        let (cluster, _) = SHARED.get_or_init(|| {
            let named = std::env::var(VARIABLE).ok().filter(|url| !url.is_empty());
            let (address, server) = if let Some(url) = named {
                let address = Address::parse(&url).unwrap_or_else(|| {
                    panic!("`{VARIABLE}` is `{url}`, and not `postgres://user@host:port/name`")
                });
                (address, None)
            } else {
                let server = started();
                (Address::local(server.port()), Some(server))
            };
            (Self { address, own: None }, server)
        });
        cluster
    }

    /// One of one's own, for tests that stop and restart it. Dropping it ends and removes it.
    ///
    /// # Panics
    ///
    /// Where there is no PostgreSQL, or it does not start.
    #[must_use]
    pub fn start() -> Self {
        let server = started();
        Self {
            address: Address::local(server.port()),
            own: Some(server),
        }
    }

    /// One of one's own, by the programs in the directory that a variable names; none, and a word about it,
    /// where the environment does not have it.
    ///
    /// # Panics
    ///
    /// Where it does not start.
    #[must_use]
    #[allow(
        clippy::print_stdout,
        reason = "whoever reads the tests' output must see what was left out"
    )]
    pub fn start_by(variable: &str) -> Option<Self> {
        let Some(bin) = std::env::var_os(variable).filter(|bin| !bin.is_empty()) else {
            println!("skipped: `{variable}` names no PostgreSQL; `script/pgvector` gets one");
            return None;
        };
        let server = must(programs::at(bin.into()).and_then(Server::start));
        Some(Self {
            address: Address::local(server.port()),
            own: Some(server),
        })
    }

    /// The address of a new, empty database that nobody else is given.
    ///
    /// # Panics
    ///
    /// Where it cannot be created.
    #[must_use]
    pub fn database(&self) -> String {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        static FIRST_AT: OnceLock<u128> = OnceLock::new();
        // Process ids come again, and a server that the environment names may be an old one.
        let first_at = FIRST_AT.get_or_init(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.unwrap_or_default().as_millis()
        });
        let process = std::process::id();
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let name = format!("onward_{first_at}_{process}_{number}");
        // Nobody can be connected to `template0`, which would make the copy fail.
        let create = format!("create database {name} template template0 encoding 'UTF8'");
        if let Err(error) = psql(&self.url("postgres"), &create) {
            panic!("no database `{name}`: {error}");
        }
        self.url(&name)
    }

    /// The address of a database of this cluster, whether or not it exists.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        self.address.with(database)
    }

    /// Lets the server crash: connections break, and what was not committed is lost.
    ///
    /// # Panics
    ///
    /// On a shared cluster, and where the server does not stop.
    pub fn stop(&self) {
        must(self.own().stop());
    }

    /// Starts the server again on the same port, and returns when it accepts connections. One
    /// that still runs is stopped first, as [`stop`](Self::stop) does.
    ///
    /// # Panics
    ///
    /// On a shared cluster, and where the server does not start.
    pub fn restart(&self) {
        must(self.own().restart());
    }

    fn own(&self) -> &Server {
        self.own.as_ref().unwrap_or_else(|| {
            panic!("others use the shared cluster too: stop one from `Cluster::start()`")
        })
    }
}

/// What `psql` answers to one statement or several: rows by line, columns by `|`.
///
/// # Errors
///
/// What `psql` said where it failed.
///
/// # Panics
///
/// Where there is no `psql`.
pub fn psql(url: &str, sql: &str) -> Result<String, String> {
    must(programs::run(must(programs::find()).command("psql").args(
        [
            "--no-psqlrc",
            "--no-password",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--set=ON_ERROR_STOP=1",
            "--command",
            sql,
            url,
        ],
    )))
}

fn started() -> Server {
    must(programs::find().and_then(Server::start))
}

fn must<T>(result: Result<T, String>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
