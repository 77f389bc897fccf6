//! What PostgreSQL says, sorted by what somebody can do about it. No message here holds a password:
//! the driver prints none, and an address is shown without.

use std::error::Error as _;
use std::fmt::Write as _;
use std::time::Duration;

use deadpool_postgres::TimeoutType;
use tokio_postgres::Error as Driver;
use tokio_postgres::error::{DbError, Severity};

use super::pool::PoolError;
use crate::error::{Corrupt, Error};

/// The code of `onward_miscounted`, a function of the schema.
const MISCOUNTED: &str = "ONW01";

const AGAIN: &str = "the call can be sent again; nothing that was answered is lost";
const UP: &str = "check that the PostgreSQL server is up, and that its host and port are right";
const UNKNOWN: &str =
    "whether this change was made is not known; look before sending the call again";

/// A statement failed.
pub(super) fn doing(why: &Driver, what: &str) -> Error {
    match why.as_db_error() {
        Some(said) => told(said, what),
        None if is_broken(why) => Error::unavailable(
            in_full(why),
            "check that the PostgreSQL server is up and can be reached; the call can be sent again",
        ),
        None => Error::Refused(format!("`{what}`: {}", in_full(why))),
    }
}

/// A commit failed after it was sent. Where its answer was lost, it may have been made.
pub(super) fn committing(why: &Driver) -> Error {
    let lost = match why.as_db_error() {
        // A server that is going down may have committed, and not say so any more.
        Some(said) => matches!(said.code().code(), "57P01" | "57P02" | "57P05" | "25P03"),
        None => true,
    };
    if lost {
        unanswered(&in_full(why))
    } else {
        doing(why, "COMMIT")
    }
}

/// A commit whose answer is lost.
pub(super) fn unanswered(why: &str) -> Error {
    Error::unavailable(
        format_args!("the answer to a commit was lost: {why}"),
        UNKNOWN,
    )
}

/// There was no answer in time.
pub(super) fn silent(limit: Duration) -> Error {
    Error::unavailable(
        format_args!("no answer within {limit:?}"),
        "check that the PostgreSQL server is up and not overloaded; the call can be sent again",
    )
}

/// No connection came out of the pool.
pub(super) fn pooling(why: PoolError, address: &str, connections: usize) -> Error {
    match why {
        PoolError::Backend(why) => connecting(&why, address),
        PoolError::Timeout(TimeoutType::Wait) => Error::unavailable(
            format_args!("all {connections} connections to `{address}` are in use"),
            "send the call again later, or allow more with `ONWARD_DATABASE_CONNECTIONS`",
        ),
        PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => unreachable(address),
        PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            Error::unavailable(
                format_args!("no connection to `{address}`: {why}"),
                "start `onward` again",
            )
        }
    }
}

/// A server does not answer at all.
pub(super) fn unreachable(address: &str) -> Error {
    Error::unavailable(format_args!("`{address}` does not answer"), UP)
}

/// A connection could not be made.
pub(super) fn connecting(why: &Driver, address: &str) -> Error {
    let hint = match why.as_db_error() {
        Some(said) => match said.code().code() {
            // Not allowed in, or no such database: the address is wrong, and stays wrong.
            "28000" | "28P01" | "3D000" | "42704" => {
                return Error::Address {
                    address: address.to_owned(),
                    why: said.message().to_owned(),
                };
            }
            code => hint(code).unwrap_or(AGAIN),
        },
        None if is_about_tls(why) => {
            "add `sslmode=disable` for a server without TLS, or name its authority's certificate \
             with `sslrootcert=PATH`"
        }
        None if is_broken(why) => UP,
        // A password that is asked for and not given, or a way to log in that is not known here.
        None => return self::address(address, in_full(why)),
    };
    Error::unavailable(format_args!("`{address}`: {}", in_full(why)), hint)
}

/// An address that cannot be used.
pub(super) fn address(address: &str, why: impl Into<String>) -> Error {
    Error::Address {
        address: address.to_owned(),
        why: why.into(),
    }
}

/// The error with everything behind it.
pub(super) fn in_full(why: &Driver) -> String {
    if let Some(said) = why.as_db_error() {
        return said.message().to_owned();
    }
    let mut words = why.to_string();
    let mut source = why.source();
    while let Some(why) = source {
        // Writing to a text does not fail.
        let _ = write!(words, ": {why}");
        source = why.source();
    }
    words
}

fn is_outdated(miscount: &str) -> bool {
    miscount.starts_with("`plan_move` touched ")
}

fn told(said: &DbError, what: &str) -> Error {
    let code = said.code().code();
    match code {
        // Two transactions got in each other's way, and this one gave in.
        "40001" | "40P01" => return Error::LostRace,
        "23505" if is_guard(said) => return Error::LostRace,
        // The plan has another version than the one that was decided on.
        MISCOUNTED if is_outdated(said.message()) => return Error::LostRace,
        MISCOUNTED => {
            let words = said.message();
            return Error::Refused(words.replace("<NULL> rows", "another number of rows"));
        }
        "XX001" | "XX002" => {
            return Error::Corrupt(Corrupt {
                table: "(server)",
                column: "(page)",
                row: "?".to_owned(),
                why: said.message().to_owned(),
            });
        }
        _ => {}
    }
    if let Some(hint) = hint(code) {
        return Error::unavailable(said.message(), hint);
    }
    let mut words = format!("`{what}`: {} ({code})", said.message());
    if let Some(more) = said.hint() {
        // Writing to a text does not fail.
        let _ = write!(words, "; {more}");
    }
    Error::Refused(words)
}

/// Whether somebody else took the number, the key or the id that this commit wanted. Ids are fresh
/// but for those of a plan that is imported, which two may do at once.
fn is_guard(said: &DbError) -> bool {
    matches!(
        said.constraint(),
        Some(
            "events_pkey"
                | "idempotency_keys_pkey"
                | "plans_pkey"
                | "steps_pkey"
                | "branches_pkey"
                | "artifacts_pkey"
                | "outputs_pkey"
        )
    )
}

/// What helps against what passes; none where it does not pass.
fn hint(code: &str) -> Option<&'static str> {
    let hint = match code {
        "53100" => "free some space on the server's disk; nothing that was answered is lost",
        "53200" => "the server is out of memory; send the call again later",
        "53300" => {
            "allow more connections on the server (`max_connections`), or fewer here with \
             `ONWARD_DATABASE_CONNECTIONS`"
        }
        "55P03" | "57014" => {
            "the server took too long, or another transaction holds the row; the call can be sent \
             again"
        }
        "25006" => {
            "this server only reads: name the primary, or list all and add \
             `target_session_attrs=read-write`"
        }
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => {
            "the server is going down or starting up; the call can be sent again"
        }
        _ if code.starts_with("08") || code.starts_with("53") || code.starts_with("58") => AGAIN,
        _ => return None,
    };
    Some(hint)
}

/// Whether it is the connection that failed, and not what was asked.
fn is_broken(why: &Driver) -> bool {
    let by_io = why
        .source()
        .is_some_and(|source| source.is::<std::io::Error>());
    why.is_closed() || by_io
}

fn is_about_tls(why: &Driver) -> bool {
    why.to_string().contains("TLS")
}

/// Whether the connection is of no use any more.
pub(super) fn ends_connection(why: &Driver) -> bool {
    match why.as_db_error() {
        Some(said) => matches!(
            said.parsed_severity(),
            Some(Severity::Fatal | Severity::Panic)
        ),
        None => is_broken(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_has_a_hint_and_the_rest_has_none() {
        for passing in [
            "53100", "53200", "53300", "57014", "57P01", "57P03", "08006", "58030",
        ] {
            assert!(hint(passing).is_some(), "{passing}");
        }
        for staying in ["23514", "42501", "42601", "22P02", "0A000"] {
            assert!(hint(staying).is_none(), "{staying}");
        }
    }
}
