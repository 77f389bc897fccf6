//! What SQLite says, sorted by what somebody can do about it.

use std::fmt;
use std::path::Path;

use rusqlite::{Error as Sqlite, ErrorCode};

use crate::error::{Corrupt, Error};

/// A statement, or a commit, failed.
pub(super) fn running(why: Sqlite, what: &'static str) -> Error {
    let message = why.to_string();
    match why.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation)
            if message.contains("events.seq") || message.contains("idempotency_key") =>
        {
            Error::LostRace
        }
        Some(code) => {
            known(code, &message).unwrap_or_else(|| Error::Refused(format!("`{what}`: {message}")))
        }
        None => Error::Refused(format!("`{what}`: {message}")),
    }
}

/// The file cannot be opened.
pub(super) fn opening(why: Sqlite, path: &Path) -> Error {
    let address = path.display().to_string();
    let message = why.to_string();
    match why.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => Error::Address {
            address,
            why: "the file is no SQLite database".to_owned(),
        },
        code => code
            .and_then(|code| known(code, &message))
            .unwrap_or_else(|| unreachable(message, path)),
    }
}

/// The file, or the way to it, is not there or not ours.
pub(super) fn unreachable(why: impl fmt::Display, path: &Path) -> Error {
    Error::unavailable(
        format_args!("`{}`: {why}", path.display()),
        "check that the directory is there and may be written to, or name another file with \
         `--database`",
    )
}

/// Another program holds the file, or stands before us in the line and does not go on.
pub(crate) fn held() -> Error {
    Error::unavailable(
        "this program could not write to the file for too long",
        HELD,
    )
}

/// What was committed may not be on disk.
pub(super) fn unsynced(why: std::io::Error) -> Error {
    Error::unavailable(
        format_args!("the disk did not take what was written: {why}"),
        "check the disk; look whether the change is there before you send the call again",
    )
}

const HELD: &str = "another program holds the file; the call can be sent again";

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "the list is SQLite's, and grows"
)]
fn known(code: ErrorCode, message: &str) -> Option<Error> {
    let hint = match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => HELD,
        ErrorCode::DiskFull => "free some space on the disk; nothing that was answered is lost",
        ErrorCode::SystemIoFailure => {
            "check the disk and its space; nothing that was answered is lost"
        }
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly => {
            "check that the file and its directory may be written to"
        }
        ErrorCode::DatabaseCorrupt => {
            return Some(Error::Corrupt(Corrupt {
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
