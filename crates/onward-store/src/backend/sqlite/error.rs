//! Maps SQLite errors to store errors, grouped by the caller's next action.

use std::fmt;
use std::path::Path;

use rusqlite::{Error as Sqlite, ErrorCode, ffi};

use crate::error::{Corrupt, Error, MAYBE_NOT_SYNCED};

/// Error of a statement or a commit.
pub(super) fn running(why: Sqlite, what: &'static str) -> Error {
    let message = why.to_string();
    let known = why
        .sqlite_error_code()
        .and_then(|code| known(code, &message));
    match known {
        Some(error) => error.caused_by(why),
        None => Error::refused(format!("`{what}`: {message}")).caused_by(why),
    }
}

/// Whether SQLite could not sync a file.
pub(super) fn is_sync_failure(why: &Sqlite) -> bool {
    let code = why.sqlite_error().map(|error| error.extended_code);
    matches!(
        code,
        Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
    )
}

/// Hint for a file that is not a database of Onward.
pub(super) const OTHER_PATH: &str =
    "use the path of an Onward database, or of a file that does not exist yet";

/// Error while opening the file.
pub(super) fn opening(why: Sqlite, path: &Path) -> Error {
    let message = why.to_string();
    let error = match why.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            Error::address(path.display(), "not an SQLite database", OTHER_PATH)
        }
        code => code
            .and_then(|code| known(code, &message))
            .unwrap_or_else(|| unreachable(message, path)),
    };
    error.caused_by(why)
}

/// The file or its directory is missing or not accessible.
pub(super) fn unreachable(why: impl fmt::Display, path: &Path) -> Error {
    Error::unavailable(
        format_args!("`{}`: {why}", path.display()),
        "check that the directory exists and is writable, or select another file with `--database`",
    )
}

/// The operating system cannot access the file or its directory.
pub(super) fn inaccessible(why: std::io::Error, path: &Path) -> Error {
    unreachable(&why, path).caused_by(why)
}

/// Another program has locked the file, or the write queue does not advance.
pub(crate) fn locked() -> Error {
    Error::unavailable("timed out while waiting to write to the file", LOCKED)
}

/// Committed data may not be on disk.
pub(super) fn unsynced(why: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::unavailable(
        format_args!("cannot sync the write-ahead log: {why}"),
        MAYBE_NOT_SYNCED,
    )
    .after_commit()
    .caused_by(why)
}

const LOCKED: &str = "another program has locked the file; retry the call";

#[allow(clippy::wildcard_enum_match_arm, reason = "SQLite may add error codes")]
fn known(code: ErrorCode, message: &str) -> Option<Error> {
    let hint = match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => LOCKED,
        ErrorCode::DiskFull => "free disk space; no acknowledged change is lost",
        ErrorCode::SystemIoFailure => {
            "check the disk and its free space; no acknowledged change is lost"
        }
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly => {
            "check that the file and its directory are writable"
        }
        ErrorCode::DatabaseCorrupt => {
            return Some(Error::from(Corrupt {
                table: "(file)",
                column: "(page)",
                row: "?".to_owned(),
                why: message.to_owned(),
            }));
        }
        _ => return None,
    };
    Some(Error::unavailable(message, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_cause() {
        for code in [
            ffi::SQLITE_NOTADB,
            ffi::SQLITE_CANTOPEN,
            ffi::SQLITE_CORRUPT,
            ffi::SQLITE_MISUSE,
        ] {
            let failure = || Sqlite::SqliteFailure(ffi::Error::new(code), None);
            for error in [opening(failure(), Path::new("f")), running(failure(), "q")] {
                assert_eq!(error.cause::<Sqlite>(), Some(&failure()), "{error}");
            }
        }
    }
}
