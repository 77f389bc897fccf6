//! Maps PostgreSQL errors to store errors, grouped by the caller's next action. No message contains
//! a password: the driver prints none, and addresses are displayed without it.

use std::error::Error as _;
use std::fmt::Write as _;
use std::time::Duration;

use tokio_postgres::Error as Driver;
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::error::{Corrupt, Error, OUTCOME_UNKNOWN};

/// SQLSTATE raised by `onward_wrong_count`, a function of the schema.
const WRONG_COUNT: &str = "ONW01";
/// SQLSTATE raised by `onward_outdated`, a function of the schema: a version check failed.
const OUTDATED: &str = "ONW02";

const AGAIN: &str = "retry the call; no acknowledged change is lost";
const UP: &str =
    "check that the PostgreSQL server is running, and that its host and port are correct";

/// Error of a statement.
pub(super) fn of_statement(why: Driver, what: &str) -> Error {
    let error = match why.as_db_error() {
        Some(db_error) => reported(db_error, what),
        None if is_broken(&why) => Error::unavailable(
            in_full(&why),
            "check that the PostgreSQL server is running and reachable, then retry the call",
        ),
        None => Error::refused(format!("`{what}`: {}", in_full(&why))),
    };
    error.caused_by(why)
}

/// Error of a statement that creates or distributes the schema. If the login lacks a privilege, the
/// address must name another one, or an administrator must follow the hint of the server.
pub(super) fn of_schema_change(why: Driver, address: &str, what: &str) -> Error {
    match why.as_db_error() {
        Some(db_error) if db_error.code() == &SqlState::INSUFFICIENT_PRIVILEGE => {
            let hint = db_error.hint().map(|hint| format!("; {hint}"));
            let message = format!("{}{}", db_error.message(), hint.unwrap_or_default());
            let hint = "use a login with this privilege, or let an administrator grant it";
            self::address(address, message, hint).caused_by(why)
        }
        Some(_) | None => of_statement(why, what),
    }
}

/// Error of a commit that was sent. If its response was lost, the commit may have succeeded.
pub(super) fn of_commit(why: Driver) -> Error {
    let lost = match why.as_db_error() {
        // A server that shuts down may have committed without sending the response.
        Some(db_error) => matches!(
            db_error.code().code(),
            "57P01" | "57P02" | "57P05" | "25P03"
        ),
        None => true,
    };
    if lost {
        outcome_unknown(&in_full(&why)).caused_by(why)
    } else {
        of_statement(why, "COMMIT")
    }
}

/// A commit whose response was lost.
pub(super) fn outcome_unknown(why: &str) -> Error {
    Error::unavailable(
        format_args!("the response to a commit was lost: {why}"),
        OUTCOME_UNKNOWN,
    )
    .after_commit()
}

/// No response in time.
pub(super) fn timed_out(limit: Duration) -> Error {
    Error::unavailable(
        format_args!("no response within {limit:?}"),
        "check that the PostgreSQL server is running and not overloaded, then retry the call",
    )
}

/// All connections are in use.
pub(super) fn pool_exhausted(address: &str, connections: usize) -> Error {
    Error::Overloaded(format!(
        "all {connections} connections to `{address}` are in use (`ONWARD_DATABASE_CONNECTIONS`)"
    ))
}

/// The pool could not be created.
pub(super) fn no_pool(address: &str) -> Error {
    self::address(
        address,
        "cannot create the connection pool",
        "report this as a bug in Onward",
    )
}

/// The pool provides no more connections.
pub(super) fn pool_closed(address: &str) -> Error {
    Error::unavailable(
        format_args!("no connection to `{address}`"),
        "restart `onward`",
    )
}

/// A pooler assigns another server connection to each transaction.
pub(super) fn pooler(address: &str) -> Error {
    self::address(
        address,
        "a connection pooler in transaction mode is in front of the server, such as PgBouncer with \
         `pool_mode = transaction`, but Onward requires sessions",
        "set `pool_mode = session` for this database, or use the address of the PostgreSQL server",
    )
}

/// A pooler does not provide a second server connection.
pub(super) fn pool_too_small(address: &str) -> Error {
    Error::unavailable(
        format_args!(
            "the connection pooler at `{address}` did not provide a second connection in time"
        ),
        "raise the pool size of the connection pooler, such as `default_pool_size` of PgBouncer",
    )
}

/// A host that was not selected.
pub(super) fn not_accepted(address: &str, what: &str) -> Error {
    Error::unavailable(
        format_args!("a host of `{address}` is {what}"),
        "check that one of the hosts is the primary",
    )
}

/// Several servers accept writes, and none of them is known to be the primary.
pub(super) fn several_primaries(address: &str, hosts: &str) -> Error {
    Error::unavailable(
        format_args!("several hosts of `{address}` accept writes: {hosts}"),
        "stop all of these servers except the primary, and rebuild the others as standbys",
    )
}

/// A former primary, which does not have the changes of the present one.
pub(super) fn former_primary(address: &str) -> Error {
    Error::unavailable(
        format_args!(
            "a host of `{address}` is a former primary: another host has a higher timeline"
        ),
        "start the primary, and rebuild the former one as a standby, for example with `pg_rewind`",
    )
}

/// The name of a host was not resolved.
pub(super) fn unresolved(address: &str, why: std::io::Error) -> Error {
    Error::unavailable(format_args!("`{address}`: {why}"), UP).caused_by(why)
}

/// Whether a pooler rejects startup options.
pub(super) fn rejects_options(why: &Driver) -> bool {
    why.as_db_error()
        .is_some_and(|db_error| db_error.code().code() == "08P01")
}

/// Whether the server rejected a connection because it has too many.
pub(super) fn is_full(why: &Error) -> bool {
    why.cause().and_then(Driver::code) == Some(&SqlState::TOO_MANY_CONNECTIONS)
}

/// The server does not respond.
pub(super) fn unreachable(address: &str) -> Error {
    Error::unavailable(format_args!("`{address}` does not respond"), UP)
}

/// A connection could not be established.
pub(super) fn of_connection(why: Driver, address: &str) -> Error {
    let message = in_full(&why);
    // The address is wrong, and a retry does not help.
    let invalid = |hint| self::address(address, &message, hint);
    let unavailable = |hint| Error::unavailable(format_args!("`{address}`: {message}"), hint);
    let error = match why.as_db_error() {
        Some(db_error) => match db_error.code().code() {
            "28000" => invalid(
                "check the user in the address: the role must exist and may log in, and `pg_hba.conf` of \
                 the server must allow it",
            ),
            "28P01" => invalid("check the user and the password in the address"),
            "3D000" => invalid(
                "check the name of the database in the address, or create the database with `CREATE \
                 DATABASE`",
            ),
            "42704" => invalid("check the `options` and the user in the address"),
            code => unavailable(hint(code).unwrap_or(AGAIN)),
        },
        None if is_broken(&why) => unavailable(UP),
        None => invalid(
            "add the password to the address; the server must request it with `scram-sha-256`, `md5` or \
             `password`",
        ),
    };
    error.caused_by(why)
}

/// A connection could not be encrypted.
pub(super) fn tls(why: Driver, address: &str) -> Error {
    Error::unavailable(
        format_args!("`{address}`: {}", in_full(&why)),
        "add `sslmode=disable` for a server without TLS, or set the certificate of its certificate \
         authority with `sslrootcert=PATH`",
    )
    .caused_by(why)
}

/// An address that cannot be used.
pub(super) fn address(address: &str, why: impl Into<String>, hint: &'static str) -> Error {
    Error::address(address, why, hint)
}

/// The error message with all its sources.
pub(super) fn in_full(why: &Driver) -> String {
    if let Some(db_error) = why.as_db_error() {
        return db_error.message().to_owned();
    }
    let mut message = why.to_string();
    let mut source = why.source();
    while let Some(why) = source {
        // Writing to a string cannot fail.
        let _ = write!(message, ": {why}");
        source = why.source();
    }
    message
}

/// Maps an error that the server reported.
fn reported(db_error: &DbError, what: &str) -> Error {
    let code = db_error.code().code();
    match code {
        // A serialization failure, a deadlock or a failed version check; or another transaction has
        // inserted a row with the same key.
        "40001" | "40P01" | "23505" | OUTDATED => return Error::LostRace,
        WRONG_COUNT => return Error::refused(db_error.message()),
        "XX001" | "XX002" => {
            return Error::from(Corrupt {
                table: "(server)",
                column: "(page)",
                row: "?".to_owned(),
                why: db_error.message().to_owned(),
            });
        }
        _ => {}
    }
    if let Some(hint) = hint(code).or_else(|| lost_server(code, db_error.message())) {
        return Error::unavailable(db_error.message(), hint);
    }
    let mut message = format!("`{what}`: {} ({code})", db_error.message());
    if let Some(more) = db_error.hint() {
        // Writing to a string cannot fail.
        let _ = write!(message, "; {more}");
    }
    Error::refused(message)
}

/// Hint for a transient error; `None` for a permanent one.
fn hint(code: &str) -> Option<&'static str> {
    let hint = match code {
        "53100" => "free disk space on the server; no acknowledged change is lost",
        "53200" => "the server is out of memory; retry the call later",
        "53300" => {
            "raise `max_connections` on the server, or lower `ONWARD_DATABASE_CONNECTIONS` of Onward"
        }
        "55P03" | "57014" => {
            "the server took too long, or another transaction holds the row; retry the call"
        }
        "25006" => {
            "this server is read-only: use the address of the primary, or list all hosts in the \
             address and add `target_session_attrs=read-write`"
        }
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => {
            "the server is shutting down or starting up; retry the call"
        }
        _ if code.starts_with("08") || code.starts_with("53") || code.starts_with("58") => AGAIN,
        _ => return None,
    };
    Some(hint)
}

/// Hint for an internal error that reports the end of a server: Citus passes on the error of a node
/// that stops, or of the connection to it, without its code.
fn lost_server(code: &str, message: &str) -> Option<&'static str> {
    const LOST: [&str; 6] = [
        "shut down",
        "shutting down",
        "starting up",
        "terminating connection",
        "closed the connection",
        "connection to the remote node",
    ];
    let is_lost = code == "XX000" && LOST.iter().any(|part| message.contains(part));
    is_lost.then_some("a node of the database stopped or is starting; retry the call")
}

/// Whether the connection failed, and not the statement.
fn is_broken(why: &Driver) -> bool {
    let by_io = why
        .source()
        .is_some_and(|source| source.is::<std::io::Error>());
    why.is_closed() || by_io
}

/// Whether the connection can no longer be used.
pub(super) fn ends_connection(why: &Driver) -> bool {
    match why.as_db_error() {
        Some(db_error) => matches!(
            db_error.parsed_severity(),
            Some(Severity::Fatal | Severity::Panic)
        ),
        None => is_broken(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_internal_error_of_a_server_that_stops_is_transient() {
        for lost in [
            "the postmaster was shut down",
            "terminating connection due to administrator command",
            "server closed the connection unexpectedly",
        ] {
            assert!(lost_server("XX000", lost).is_some(), "{lost}");
            assert!(lost_server("42601", lost).is_none(), "{lost}");
        }
        assert!(lost_server("XX000", "cache lookup failed for type 1").is_none());
    }

    #[test]
    fn only_transient_errors_have_a_hint() {
        for transient in [
            "53100", "53200", "53300", "57014", "57P01", "57P03", "08006", "58030",
        ] {
            assert!(hint(transient).is_some(), "{transient}");
        }
        for permanent in ["23514", "42501", "42601", "22P02", "0A000"] {
            assert!(hint(permanent).is_none(), "{permanent}");
        }
    }
}
