//! Schema migrations of a file: embedded, forward-only, all pending ones in one transaction.
//!
//! Several processes may start concurrently: the version is read again inside the transaction, so
//! each migration runs once. `user_version` is the schema version; an empty file has 0. A file with
//! an older schema is first copied to `FILE.before-schema-VERSION`.

use std::path::{Path, PathBuf};

use super::file::File;
use super::paths::companion;
use super::{backup, error};
use crate::backend::relocation::unfinished;
use crate::error::Error;

/// All migrations, in order; the first one creates version 1.
pub(super) const STEPS: [&str; 1] = [include_str!("../../../migrations/sqlite/0001_schema.sql")];

/// Version that this program requires.
pub(crate) const VERSION: i64 = STEPS.len() as i64;

/// `application_id` of a file that contains an Onward database: `Onwd`.
pub(crate) const APPLICATION_ID: i64 = 0x4f6e_7764;

/// Fails if the file contains another application's data. An empty file is accepted unless
/// `created` is set.
pub(super) fn check_application(
    connection: &File,
    path: &Path,
    created: bool,
) -> Result<(), Error> {
    let file = &connection.file;
    let number = |name: &'static str| {
        let read = file.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        read.map_err(|why| error::opening(why, path))
    };
    let application = number("application_id")?;
    // `schema_version` is 0 until the first table is created.
    let is_empty = application == 0 && number("schema_version")? == 0;
    if application == APPLICATION_ID || (is_empty && !created) {
        return Ok(());
    }
    Err(Error::address(
        path.display(),
        "not an Onward database",
        error::OTHER_PATH,
    ))
}

/// Version of the file. Fails if a move into it has not ended.
pub(crate) fn version(connection: &File) -> Result<i64, Error> {
    match recorded_version(connection)? {
        version if version < 0 => Err(unfinished()),
        version => Ok(version),
    }
}

/// Version of the file; negative until a move into it has ended.
pub(super) fn recorded_version(connection: &File) -> Result<i64, Error> {
    connection
        .file
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|why| error::running(why, "user_version"))
}

/// Migrates the file at the path to the required version.
pub(super) fn migrate(connection: &File, path: &Path) -> Result<(), Error> {
    migrate_with(&STEPS, connection, path)
}

fn migrate_with(steps: &[&str], connection: &File, path: &Path) -> Result<(), Error> {
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    if version(connection)? == known {
        return Ok(());
    }
    connection.control("BEGIN IMMEDIATE")?;
    let done = run(steps, known, connection, path);
    match &done {
        Ok(()) => connection.control("COMMIT")?,
        // Report the first error, not one of the rollback.
        Err(_) => drop(connection.control("ROLLBACK")),
    }
    done
}

fn run(steps: &[&str], known: i64, connection: &File, path: &Path) -> Result<(), Error> {
    let found = version(connection)?;
    if found > known {
        return Err(Error::Newer { found, known });
    }
    if found > 0 && found < known {
        // Another connection reads the last committed state, and this transaction blocks writers.
        backup::back_up(path, &unused_copy(path, known))?;
    }
    let failed = |why| error::running(why, "migration");
    for (step, version) in steps.iter().zip(1i64..).filter(|(_, to)| *to > found) {
        connection.file.execute_batch(step).map_err(failed)?;
        connection
            .file
            .pragma_update(None, "user_version", version)
            .map_err(failed)?;
    }
    connection
        .file
        .pragma_update(None, "application_id", APPLICATION_ID)
        .map_err(failed)?;
    Ok(())
}

/// The path of the copy. A number is appended if a copy exists, for example because the older
/// database was restored and is migrated again.
fn unused_copy(path: &Path, known: i64) -> PathBuf {
    let first = companion(path, &format!(".before-schema-{known}"));
    let numbered = (2..).map(|number: u64| companion(&first, &format!("-{number}")));
    let mut candidates = std::iter::once(first.clone()).chain(numbered);
    candidates.find(|copy| !copy.exists()).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use onward_testbed::TestDir;

    use super::*;
    use crate::backend::sqlite::paths;

    /// A migration that follows the latest one.
    const NEXT: &str = "CREATE TABLE next (id INTEGER PRIMARY KEY) STRICT; \
         INSERT INTO next (id) SELECT count(*) FROM tenants;";

    /// The schemas of a program that is one version newer.
    fn next_steps() -> Vec<&'static str> {
        STEPS.into_iter().chain([NEXT]).collect()
    }

    /// An empty database with the latest schema, and one tenant.
    fn latest(dir: &TestDir) -> PathBuf {
        let path = dir.path().join("onward.db");
        paths::create(&path).unwrap();
        let file = File::open(&path).unwrap();
        file.prepare_to_write(&path).unwrap();
        migrate(&file, &path).unwrap();
        assert_eq!(version(&file).unwrap(), VERSION);
        file.file
            .execute(
                "INSERT INTO tenants (tenant_id, agents_decide_reviews, created_at) VALUES ('a', 0, 0)",
                [],
            )
            .unwrap();
        path
    }

    fn copies(path: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(path.parent().unwrap()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut copies: Vec<String> = names.filter(|name| name.contains(".before-")).collect();
        copies.sort();
        copies
    }

    #[test]
    fn a_newer_program_migrates_and_keeps_a_copy_of_the_older_schema() {
        let dir = TestDir::new("migrate");
        let path = latest(&dir);
        assert_eq!(copies(&path), [""; 0], "a new file needs no copy");
        let file = File::open(&path).unwrap();
        migrate_with(&next_steps(), &file, &path).unwrap();
        assert_eq!(version(&file).unwrap(), VERSION + 1);
        let count = |file: &File, table: &str| {
            let text = format!("SELECT count(*) FROM {table}");
            file.file.query_row(&text, [], |row| row.get::<_, i64>(0))
        };
        assert_eq!(count(&file, "next"), Ok(1));
        let expected = format!("onward.db.before-schema-{}", VERSION + 1);
        assert_eq!(copies(&path), [expected.as_str()]);
        let copy = File::open_to_read(&dir.path().join(&expected)).unwrap();
        assert_eq!(version(&copy).unwrap(), VERSION);
        assert_eq!(count(&copy, "tenants"), Ok(1));
        check_application(&copy, &path, true).unwrap();
        // Up to date: neither a migration nor a copy.
        migrate_with(&next_steps(), &file, &path).unwrap();
        assert_eq!(copies(&path).len(), 1);
    }

    #[test]
    fn an_older_program_rejects_the_next_schema_without_changes() {
        let dir = TestDir::new("migrate");
        let path = latest(&dir);
        let file = File::open(&path).unwrap();
        migrate_with(&next_steps(), &file, &path).unwrap();
        let rejected = migrate(&file, &path).unwrap_err();
        let (next, latest) = (VERSION + 1, VERSION);
        assert!(
            matches!(rejected, Error::Newer { found, known } if (found, known) == (next, latest)),
            "{rejected}"
        );
        assert_eq!(version(&file).unwrap(), next);
        assert_eq!(copies(&path).len(), 1);
    }

    #[test]
    fn a_failed_migration_changes_nothing() {
        let dir = TestDir::new("migrate");
        let path = latest(&dir);
        let file = File::open(&path).unwrap();
        let broken = [
            STEPS[0],
            "CREATE TABLE next (id INTEGER); CREATE TABLE tenants (id);",
        ];
        migrate_with(&broken, &file, &path).unwrap_err();
        assert_eq!(version(&file).unwrap(), VERSION);
        // A second attempt keeps the first copy.
        migrate_with(&broken, &file, &path).unwrap_err();
        assert_eq!(copies(&path).len(), 2);
        migrate_with(&next_steps(), &file, &path).unwrap();
        assert_eq!(version(&file).unwrap(), VERSION + 1);
    }
}
