//! Test databases: a file in a temporary directory, or a database on the testbed's PostgreSQL
//! server. Creating a PostgreSQL database takes a quarter of a second, so databases are shared or
//! reused.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{LazyLock, Mutex, OnceLock};
use std::time::Duration;

use onward_engine::engine::Settings;
use onward_engine::{Address, Engine, distribute};
use onward_testbed::{Backend, Cluster, TestDir, psql};
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::ValueRef;
use tokio::runtime::{Builder, Runtime};

/// Shared by all tests: pooled connections must not outlive the runtime that created them.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("runtime was started")
});

/// Whether other tests may use the same database concurrently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    Shared,
    Exclusive,
}

pub(crate) enum TestDatabase {
    File(TestDir),
    /// The URL of a superuser. The program uses another login.
    Server(String),
}

/// Exclusive databases that no test is using at the moment.
static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl TestDatabase {
    /// A new file on SQLite; a shared or released database on PostgreSQL.
    pub(crate) fn acquire(backend: Backend, isolation: Isolation) -> Self {
        static SHARED: OnceLock<String> = OnceLock::new();
        match (backend, isolation) {
            (Backend::Sqlite, _) => TestDatabase::File(TestDir::new("conformance")),
            (Backend::Postgres, Isolation::Shared) => {
                let url = SHARED.get_or_init(create_without_sync);
                TestDatabase::Server(url.clone())
            }
            (Backend::Postgres, Isolation::Exclusive) => {
                let free = FREE.lock().expect("lock is not poisoned").pop();
                TestDatabase::Server(free.unwrap_or_else(create_without_sync))
            }
        }
    }

    /// Creates an empty database without a schema.
    pub(crate) fn create(backend: Backend) -> Self {
        match backend {
            Backend::Sqlite => TestDatabase::File(TestDir::new("conformance")),
            Backend::Postgres => {
                let url = Cluster::shared().database();
                create_owner(&url);
                TestDatabase::Server(url)
            }
        }
    }

    /// Makes an exclusive database available to other tests.
    pub(crate) fn release(self, isolation: Isolation) {
        if let (TestDatabase::Server(url), Isolation::Exclusive) = (self, isolation) {
            FREE.lock().expect("lock is not poisoned").push(url);
        }
    }

    pub(crate) fn backend(&self) -> Backend {
        match self {
            TestDatabase::File(_) => Backend::Sqlite,
            TestDatabase::Server(_) => Backend::Postgres,
        }
    }

    /// The address for the program; on PostgreSQL, with the login that owns the database.
    pub(crate) fn address(&self) -> Address {
        match self {
            TestDatabase::File(dir) => Address::File(dir.join("onward.db")),
            TestDatabase::Server(url) => Address::Server(owner_url(url)),
        }
    }

    /// Runs SQL directly on the database as a superuser. Returns one line per row, columns
    /// separated by `|`. An SQLite error starts with its result code, for example
    /// `ConstraintViolation`.
    pub(crate) fn sql(&self, statements: &str) -> Result<String, String> {
        match self {
            TestDatabase::File(dir) => run(&dir.join("onward.db"), statements).map_err(|error| {
                match error.sqlite_error() {
                    Some(code) => format!("{:?}: {error}", code.code),
                    None => error.to_string(),
                }
            }),
            TestDatabase::Server(url) => psql(url, statements),
        }
    }
}

/// Creates a database with `synchronous_commit = off`. Durability is tested elsewhere; here it
/// would only cost time. It is distributed if a Citus cluster is configured.
fn create_without_sync() -> String {
    let cluster = Cluster::distributed();
    let url = cluster.unwrap_or_else(|| Cluster::shared()).database();
    create_owner(&url);
    if cluster.is_some() {
        distribute_tables(&url);
    }
    let set = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', \
               current_database()); END $$";
    psql(&url, set).expect("database settings were changed");
    url
}

/// Creates the owner of a database: a login without other privileges, to which row security applies.
fn create_owner(url: &str) {
    // Another test may create the role concurrently.
    let create = "DO $$ BEGIN CREATE ROLE onward_tenant NOLOGIN; \
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$";
    psql(url, create).expect("role exists");
    let owner = database_name(url);
    let create = format!(
        "CREATE ROLE {owner} LOGIN; GRANT onward_tenant TO {owner}; \
         ALTER DATABASE {owner} OWNER TO {owner}"
    );
    psql(url, &create).expect("owner was created");
}

/// The same database with its owner as login, who has the name of the database.
fn owner_url(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").expect("URL has a scheme");
    let host = rest.split_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{}@{host}", database_name(url))
}

fn database_name(url: &str) -> &str {
    let address = url.split('?').next().unwrap_or(url);
    let (_, name) = address.rsplit_once('/').expect("URL has a database");
    name
}

/// Creates the schema as the owner, and distributes it over the nodes of a cluster.
fn distribute_tables(url: &str) {
    let (own, superuser) = (owner_url(url), url.to_owned());
    // The caller may be asynchronous already.
    let distributing = std::thread::spawn(move || {
        RUNTIME.block_on(async {
            let engine = Engine::open(&Address::Server(own), Settings::default()).await;
            engine.expect("schema was created").close().await;
            let tables = distribute(&Address::Server(superuser)).await;
            assert!(tables.expect("tables were distributed") > 0);
        });
    });
    distributing.join().expect("database was distributed");
}

fn run(file: &Path, statements: &str) -> rusqlite::Result<String> {
    let connection = rusqlite::Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(20))?;
    let mut lines = Vec::new();
    let mut batch = rusqlite::Batch::new(&connection, statements);
    while let Some(mut statement) = batch.next()? {
        // Only `EXPLAIN` statements have parameters; NULL is good enough for them.
        let values = vec![rusqlite::types::Null; statement.parameter_count()];
        let values = rusqlite::params_from_iter(values);
        if statement.column_count() == 0 {
            statement.execute(values)?;
            continue;
        }
        let width = statement.column_count();
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            let cells: rusqlite::Result<Vec<String>> = (0..width)
                .map(|column| row.get_ref(column).map(cell_text))
                .collect();
            lines.push(cells?.join("|"));
        }
    }
    Ok(lines.join("\n"))
}

fn cell_text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(int) => int.to_string(),
        ValueRef::Real(real) => real.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(bytes) => bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a String cannot fail");
            text
        }),
    }
}
