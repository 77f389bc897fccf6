//! Schema migrations of a file: embedded, forward-only, all pending ones in one transaction.
//!
//! Several processes may start concurrently: the version is read again inside the transaction, so
//! each migration runs once. `user_version` is the schema version; an empty file has 0.

use std::path::Path;

use super::error;
use super::file::File;
use crate::backend::relocation::unfinished;
use crate::error::Error;

/// All migrations, in order; the first one creates version 1.
pub(crate) const STEPS: [&str; 1] = [include_str!("../../../migrations/sqlite/0001_schema.sql")];

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
    Err(Error::Address {
        address: path.display().to_string(),
        why: "not an Onward database".to_owned(),
    })
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

/// Migrates the file to the required version.
pub(super) fn migrate(connection: &File) -> Result<(), Error> {
    if version(connection)? == VERSION {
        return Ok(());
    }
    connection.control("BEGIN IMMEDIATE")?;
    let done = steps(connection);
    match &done {
        Ok(()) => connection.control("COMMIT")?,
        // Report the first error, not one of the rollback.
        Err(_) => drop(connection.control("ROLLBACK")),
    }
    done
}

fn steps(connection: &File) -> Result<(), Error> {
    let found = version(connection)?;
    if found > VERSION {
        let known = VERSION;
        return Err(Error::Newer { found, known });
    }
    let failed = |why| error::running(why, "migration");
    for (step, version) in STEPS.iter().zip(1i64..).filter(|(_, to)| *to > found) {
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
