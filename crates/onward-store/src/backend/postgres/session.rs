//! The settings of a session, set and verified by statements after connecting.
//!
//! Startup options would cost nothing, but connection poolers reject them or drop them silently. A
//! session that lacks the role of transactions is not subject to row security, so it is rejected.
//!
//! A session that has the startup option [`MARK`] is connected to the server itself. Otherwise a
//! pooler is in between, and its transactions verify their server process (`pool`).

use tokio_postgres::{Client, SimpleQueryMessage};

use super::error;
use super::hosts::Accepted;
use crate::error::Error;

/// The role that is subject to row security, regardless of the login.
pub(super) const ROLE: &str = "onward_tenant";

/// Maximum wait for a locked row.
const LOCK_TIMEOUT: &str = "10s";

/// For transactions. The server cancels long lock waits, long statements and idle transactions. JIT
/// compilation costs more than any of these queries takes.
const LIMITS: [(&str, &str); 4] = [
    ("lock_timeout", LOCK_TIMEOUT),
    ("statement_timeout", "30s"),
    ("idle_in_transaction_session_timeout", "60s"),
    ("jit", "off"),
];

/// A statement is planned once per connection, independently of its parameters and without
/// sequential scans: a plan made for a small table would still be used when the table is large.
const GENERIC_PLANS: [(&str, &str); 2] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
];

/// Citus selects the node by the value of the tenant, which a generic plan does not contain. It
/// forwards `SET LOCAL` to the nodes of a transaction. A node that does not respond must not block the
/// connections that the calls of other tenants need.
const ON_CITUS: [(&str, &str); 3] = [
    ("plan_cache_mode", "force_custom_plan"),
    ("citus.node_connection_timeout", "5s"),
    ("citus.propagate_set_commands", "local"),
];

/// For long-lived connections, which wait without a timeout. A server detects a disconnected client
/// within half a minute.
const LONG_LIVED: [(&str, &str); 5] = [
    ("lock_timeout", "0"),
    ("statement_timeout", "0"),
    ("tcp_keepalives_idle", "15"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
];

/// Startup option that only the server itself applies.
pub(super) const MARK: &str = "onward.direct";

/// The settings of a session, in the order in which they are set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Session {
    settings: Vec<(String, String)>,
    assumes_role: bool,
}

impl Session {
    /// For transactions. `schemas` is the search path of the login: `"$user"` in it would be another
    /// schema for the role of a transaction. The options of the address take precedence.
    pub(super) fn for_transactions(given: &[Setting], schemas: &str, distributed: bool) -> Self {
        let planning: &[(&str, &str)] = if distributed {
            &ON_CITUS
        } else {
            &GENERIC_PLANS
        };
        let mut settings = owned(&LIMITS);
        settings.extend(owned(planning));
        settings.extend_from_slice(given);
        settings.push(("search_path".to_owned(), schemas.to_owned()));
        Self {
            settings,
            assumes_role: true,
        }
    }

    /// For long-lived connections.
    pub(super) fn long_lived(given: &[Setting]) -> Self {
        let mut settings = owned(&LONG_LIVED);
        settings.extend_from_slice(given);
        Self {
            settings,
            assumes_role: false,
        }
    }

    /// Applies the settings, and verifies the session. Returns the server process if a pooler is in
    /// between; `mark` is the value of the startup option [`MARK`].
    pub(super) async fn start(
        &self,
        client: &Client,
        mark: Option<&str>,
        accepted: Accepted,
        shown: &str,
    ) -> Result<Option<i32>, Error> {
        let messages = client.simple_query(&self.sql()).await;
        let messages = messages.map_err(|why| error::of_connection(why, shown))?;
        let row = messages.iter().rev().find_map(|message| {
            if let SimpleQueryMessage::Row(row) = message {
                Some(row)
            } else {
                None
            }
        });
        let cell = |column| row.and_then(|row| row.try_get(column).ok().flatten());
        let is = |column| cell(column) == Some("t");
        if let Some(what) = accepted.refusal(is("standby"), is("read_only")) {
            return Err(error::not_accepted(shown, what));
        }
        if self.assumes_role && cell("role") != Some(ROLE) {
            let role = cell("role").unwrap_or_default();
            let why = format!("the session role is `{role}`; expected `{ROLE}`");
            let hint = "use the address of the PostgreSQL server, without a connection pooler";
            return Err(error::address(shown, why, hint));
        }
        let process = cell("process").and_then(|process| process.parse().ok());
        let Some(process) = process else {
            let why = "the server has no process id";
            return Err(error::address(shown, why, "use a PostgreSQL server"));
        };
        let is_direct = mark.is_some() && cell("mark") == mark;
        Ok((!is_direct).then_some(process))
    }

    /// SQL that applies the settings, and returns the state of the session.
    fn sql(&self) -> String {
        let role = self.assumes_role.then_some(("role", ROLE));
        let settings = self
            .settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        // `set_config` parses the value of a list; `SET` would quote it as one element.
        let set = settings.chain(role).map(|(name, value)| {
            format!("set_config({}, {}, false)", literal(name), literal(value))
        });
        let set: Vec<String> = set.collect();
        format!(
            "SELECT {}; SELECT current_user::text AS role, pg_backend_pid() AS process, \
             current_setting('{MARK}', true) AS mark, pg_is_in_recovery() AS standby, \
             current_setting('transaction_read_only')::bool AS read_only",
            set.join(", ")
        )
    }
}

/// A setting of a session.
pub(super) type Setting = (String, String);

fn owned(settings: &[(&str, &str)]) -> Vec<Setting> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    settings.iter().map(own).collect()
}

/// A literal with the same meaning for every value of `standard_conforming_strings`.
pub(super) fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', r"\\").replace('\'', "''"))
}

/// The lock timeout of a transaction.
pub(super) fn lock_timeout(given: &[Setting]) -> &str {
    let last = given
        .iter()
        .rev()
        .find(|(name, _)| name.eq_ignore_ascii_case("lock_timeout"));
    last.map_or(LOCK_TIMEOUT, |(_, value)| value)
}

/// The settings in the `options` of an address: `-c name=value` or `--name=value`, with `\` before a
/// space that is part of a value. `None` if they have another form.
pub(super) fn parse_options(options: &str) -> Option<Vec<Setting>> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut letters = options.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => word.push(letters.next()?),
            letter if letter.is_whitespace() => words.push(std::mem::take(&mut word)),
            letter => word.push(letter),
        }
    }
    words.push(word);
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let (setting, dashes) = match (word.strip_prefix("--"), word.strip_prefix("-c")) {
            (Some(setting), _) => (setting.to_owned(), true),
            (None, Some("")) => (words.next()?, false),
            (None, Some(setting)) => (setting.to_owned(), false),
            (None, None) => return None,
        };
        let (name, value) = setting.split_once('=')?;
        let name = if dashes {
            name.replace('-', "_")
        } else {
            name.to_owned()
        };
        settings.push((name, value.to_owned()));
    }
    Some(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_settings_in_the_options_of_an_address() {
        let settings = |options| {
            let parsed = parse_options(options)?;
            let pairs = parsed
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"));
            Some(pairs.collect::<Vec<_>>().join(";"))
        };
        assert_eq!(settings("").unwrap(), "");
        assert_eq!(
            settings(r"-c jit=on  -csearch_path=a\ b,c --lock-timeout=1s").unwrap(),
            "jit=on;search_path=a b,c;lock_timeout=1s"
        );
        for other in ["-N 5", "-c", "-c jit", "--jit", r"-c a=\"] {
            assert_eq!(settings(other), None, "{other}");
        }
    }

    #[test]
    fn options_of_the_address_take_precedence() {
        let given = parse_options("-c jit=on -c lock_timeout=1s").unwrap();
        let session = Session::for_transactions(&given, r#""a b","c\d'""#, false);
        let sql = session.sql();
        let place = |text: &str| sql.find(text).unwrap();
        assert!(place("E'jit', E'off'") < place("E'jit', E'on'"), "{sql}");
        assert!(sql.contains(r#"set_config(E'search_path', E'"a b","c\\d''"', false)"#));
        assert!(place("E'search_path'") < place("E'role'"));
        assert_eq!(lock_timeout(&given), "1s");
        assert_eq!(lock_timeout(&[]), LOCK_TIMEOUT);
    }
}
