//! Where a test's database is: a file in a folder that goes with the test, or a database on the
//! testbed's server. Making one there takes a quarter of a second, so it is shared, or used again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use onward_engine::Address;
use onward_testbed::{Cluster, psql};
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::ValueRef;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

/// Whether other tests may be on the same database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    Shared,
    Alone,
}

/// A database.
pub(crate) enum Place {
    File(Folder),
    Server(String),
}

/// Databases that one test at a time has alone, while none has them.
static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl Place {
    pub(crate) fn find(kind: Kind, company: Company) -> Self {
        static SHARED: OnceLock<String> = OnceLock::new();
        match (kind, company) {
            (Kind::Sqlite, _) => Place::File(Folder::make()),
            (Kind::Postgres, Company::Shared) => {
                let url = SHARED.get_or_init(hasty);
                Place::Server(url.clone())
            }
            (Kind::Postgres, Company::Alone) => {
                let free = FREE.lock().expect("no test panics here").pop();
                Place::Server(free.unwrap_or_else(hasty))
            }
        }
    }

    /// One that nobody has ever used.
    pub(crate) fn fresh(kind: Kind) -> Self {
        match kind {
            Kind::Sqlite => Place::File(Folder::make()),
            Kind::Postgres => Place::Server(Cluster::shared().database()),
        }
    }

    /// The test went well, and left nothing behind that another could trip over.
    pub(crate) fn give_back(self, company: Company) {
        if let (Place::Server(url), Company::Alone) = (self, company) {
            FREE.lock().expect("no test panics here").push(url);
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Place::File(_) => Kind::Sqlite,
            Place::Server(_) => Kind::Postgres,
        }
    }

    pub(crate) fn address(&self) -> Address {
        match self {
            Place::File(folder) => Address::File(folder.database()),
            Place::Server(url) => Address::Server(url.clone()),
        }
    }

    /// Runs statements past the store, as one who may do everything. Rows by line, columns by `|`.
    pub(crate) fn sql(&self, statements: &str) -> Result<String, String> {
        match self {
            Place::File(folder) => {
                run(&folder.database(), statements).map_err(|why| why.to_string())
            }
            Place::Server(url) => psql(url, statements),
        }
    }
}

/// A database that answers before a commit is on the disk. What survives a crash is tested elsewhere;
/// here it would only cost time, on a disk that others use too.
fn hasty() -> String {
    let url = Cluster::shared().database();
    let set = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', \
               current_database()); END $$";
    psql(&url, set).expect("the database can be set up");
    url
}

fn run(file: &Path, statements: &str) -> rusqlite::Result<String> {
    let connection = rusqlite::Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(20))?;
    let mut lines = Vec::new();
    let mut batch = rusqlite::Batch::new(&connection, statements);
    while let Some(mut statement) = batch.next()? {
        // Only what is to be explained has parameters, and no values for them.
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
                .map(|place| row.get_ref(place).map(cell))
                .collect();
            lines.push(cells?.join("|"));
        }
    }
    Ok(lines.join("\n"))
}

fn cell(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(int) => int.to_string(),
        ValueRef::Real(real) => real.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(bytes) => bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a text can be written to");
            text
        }),
    }
}

/// A folder that is gone when it is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn make() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("onward-conformance-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("onward.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it stays in the system's folder for temporary things.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
