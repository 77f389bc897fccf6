//! SQL text of a message: one statement, or several row changes merged into one.
//!
//! A statement that must affect a certain number of rows is wrapped so that the server fails on any
//! other number: `COMMIT` is sent in the same round trip, so a check of the response would be too
//! late. A lost race is not an error of the server: the statement writes nothing and returns no row
//! (`OnLostRace`).
//!
//! The row changes of every transition are merged: each message costs as much as a small write, and
//! each statement opens a table with all its indexes again.

use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

use crate::query::{Dialect, Query};
use crate::recent::Recent;
use crate::row_change::{Effect, RowChange, Type};
use crate::statement::{Expect, Statement};
use crate::value::{Columns, Value};

/// SQL text of a message and its metadata.
pub(super) struct MessageText {
    pub(super) sql: Arc<str>,
    /// Whether its rows are a result, and not only the check of the row count.
    pub(super) returns_rows: bool,
    /// Whether it returns one row per written row, with the key of that row if it was merged. A
    /// missing row is then a lost race.
    pub(super) returns_keys: bool,
    pub(super) columns: OnceLock<Columns>,
}

/// The effect of a statement that has lost a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum OnLostRace {
    /// It fails. Used if the transaction has locked the rows, so that a lost race is a bug, and in
    /// a distributed database, where only a failure stops the other changes of a merged statement.
    Fail,
    /// It writes nothing and returns no row. Otherwise it returns the keys of the written rows.
    Skip,
    /// Like `Skip`, and rows locked by another transaction count as lost, so it does not wait.
    SkipLocked,
}

/// The statements of a message, and how it is rendered.
type Key = (Vec<(Query, Expect)>, Form, OnLostRace);

/// The texts of recent messages. Each combination of statements has its own text, and there is no limit
/// to the number of combinations.
static TEXTS: LazyLock<RwLock<Recent<Key, Arc<MessageText>>>> =
    LazyLock::new(|| RwLock::new(Recent::new(TEXT_CAPACITY)));

/// Capacity of a generation of texts. A text takes up to 30 KB; a server that does everything uses a few
/// hundred.
const TEXT_CAPACITY: usize = 256;

/// How the row changes of a message are rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// For a single server.
    Single,
    /// For a distributed database, in which only a failure stops the messages after it.
    Distributed,
    /// The same, after a message that has checked the version that the changes are based on.
    DistributedAfterCheck,
}

impl Form {
    /// The form of the first message.
    pub(super) fn new(distributed: bool) -> Self {
        if distributed {
            Self::Distributed
        } else {
            Self::Single
        }
    }

    /// The form of the messages after one with these statements.
    pub(super) fn after(self, run: &[&Statement]) -> Self {
        if self == Self::Distributed && run.iter().any(|one| one.checks_version()) {
            Self::DistributedAfterCheck
        } else {
            self
        }
    }

    fn is_distributed(self) -> bool {
        self != Self::Single
    }
}

impl MessageText {
    /// The text of a message with these statements; `None` if one of them has no text.
    pub(super) fn new(
        run: &[&Statement],
        form: Form,
        on_lost_race: OnLostRace,
    ) -> Option<Arc<Self>> {
        let statements: Vec<_> = run.iter().map(|one| (one.query, one.expect)).collect();
        let on_lost_race = match statements.first() {
            _ if form.is_distributed() => OnLostRace::Fail,
            // No lock prevents another transaction from inserting a key.
            Some((_, Expect::NewKey)) => OnLostRace::Skip,
            Some((_, Expect::Version)) => on_lost_race,
            Some(_) | None => OnLostRace::Fail,
        };
        let key = (statements, form, on_lost_race);
        // A panic while adding an entry leaves the map valid.
        let known = TEXTS.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = known.peek(&key) {
            return Some(Arc::clone(text));
        }
        drop(known);
        let mut known = TEXTS.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = known.get(&key) {
            return Some(Arc::clone(text));
        }
        let text = Arc::new(Self::render(&key.0, form, on_lost_race)?);
        known.insert(key, Arc::clone(&text));
        Some(text)
    }

    fn render(
        statements: &[(Query, Expect)],
        form: Form,
        on_lost_race: OnLostRace,
    ) -> Option<Self> {
        let returns_keys = on_lost_race != OnLostRace::Fail;
        let (query, expect) = *statements.first()?;
        let (sql, returns_rows) = if query.row_change().is_some() {
            (merged(statements, form, on_lost_race), false)
        } else {
            let text = query.text(Dialect::Postgres)?;
            match expect {
                Expect::Any => (text.to_owned(), true),
                Expect::Version | Expect::NewKey if returns_keys => {
                    (format!("{text} RETURNING 1::bigint"), false)
                }
                Expect::Version | Expect::NewKey | Expect::Rows(_) => {
                    (checked(query, text, expect), false)
                }
            }
        };
        Some(Self {
            sql: sql.into(),
            returns_rows,
            returns_keys,
            columns: OnceLock::new(),
        })
    }
}

/// Parameters of a message: the tenant once, then those of each statement.
pub(super) fn parameters<'v>(
    run: &[&'v Statement],
    distributed: bool,
) -> impl Iterator<Item = &'v Value> {
    let tenant = run
        .first()
        .and_then(|first| first.params.first())
        .into_iter();
    let others = run.iter().flat_map(move |one| {
        let used = match one.query.row_change() {
            Some(change) => 1 + columns(change, distributed).len(),
            None => one.params.len(),
        };
        one.params.iter().take(used).skip(1)
    });
    tenant.chain(others)
}

/// Maximum number of merged statements: a message has at most 65,535 parameters, and each number of
/// statements needs a separate statement text.
pub(super) const MOST_MERGED: usize = 64;

/// Number of leading statements that can be merged. A statement can change a row only once.
///
/// Citus runs the changes of a merged statement one after the other, each as a separate statement with
/// a file for its result, and its check last. So in a distributed database only rows of one table are
/// merged, and a version check is a separate message: if it fails, the changes after it do not run.
pub(super) fn mergeable(statements: &[&Statement], distributed: bool) -> usize {
    let mut rows: Vec<(&str, &Value)> = Vec::new();
    let mut length = 0;
    for statement in statements.iter().take(MOST_MERGED) {
        let Some(row) = changed_row(statement) else {
            break;
        };
        let is_first = statements
            .iter()
            .take(length)
            .all(|one| one.checks_version());
        if statement.checks_version() && (distributed || !is_first) {
            break;
        }
        let is_same =
            |first: &&Statement| (first.query, first.expect) == (statement.query, statement.expect);
        if distributed && !statements.first().is_some_and(is_same) {
            break;
        }
        if let Some(row) = row {
            if rows.contains(&row) {
                break;
            }
            rows.push(row);
        }
        length += 1;
    }
    length.max(1)
}

/// The table and key of the row that a statement changes. `None` if it is not a row change;
/// `Some(None)` if no other statement can change the row: it is new, or padding.
pub(super) fn changed_row(statement: &Statement) -> Option<Option<(&'static str, &Value)>> {
    let change = statement.query.row_change()?;
    let is_new = change.effect == Effect::Insert;
    let key = statement.params.get(1).filter(|key| **key != Value::Null);
    Some(key.filter(|_| !is_new).map(|key| (change.table, key)))
}

/// A statement that fails if it affects another number of rows than required.
fn checked(query: Query, text: &str, expect: Expect) -> String {
    let count = "(SELECT count(*) FROM change)";
    let rows = expect.rows().unwrap_or_default();
    let failure = failure(query, expect, count, rows);
    format!(
        "WITH change AS ({text} RETURNING 1) SELECT CASE {count} WHEN {rows} THEN 0 \
         ELSE {failure} END"
    )
}

/// A call that fails. It is evaluated only if the check before it failed.
fn failure(query: Query, expect: Expect, count: &str, rows: u64) -> String {
    let name = query.name().replace('\'', "''");
    match expect {
        Expect::Version | Expect::NewKey => format!("onward_outdated('{name}')"),
        Expect::Any | Expect::Rows(_) => {
            format!("onward_wrong_count('{name}', {count}, {rows})")
        }
    }
}

/// Merges row changes into one statement, which fails if one of them affects another number of rows
/// than required. The server executes a counted change when it counts its rows. After a wrong
/// count, it executes no further counted change, which would be based on an outdated state. The
/// error does not contain the number of affected rows, because that would be a second count,
/// prepared each time.
///
/// If a row still has the version that the decision was based on, the rows that depend on it are
/// unchanged too. So they are not counted after a version check: counting took 5 % of the time of
/// the statement. If a lost race is skipped, they depend on the key that the version check returns,
/// and the statement returns these keys.
///
/// In a distributed database, a change that is not counted is a plain statement, which Citus forwards
/// as it is.
fn merged(statements: &[(Query, Expect)], form: Form, on_lost_race: OnLostRace) -> String {
    let distributed = form.is_distributed();
    let guarded = form == Form::DistributedAfterCheck
        || statements
            .first()
            .is_some_and(|(_, expect)| *expect == Expect::Version);
    let skips = guarded && on_lost_race != OnLostRace::Fail;
    let mut groups: Vec<Rows> = Vec::new();
    // The first parameter is the tenant, shared by all changes.
    let mut parameter = 2;
    for &(query, expect) in statements {
        let Some(change) = query.row_change() else {
            continue;
        };
        match groups.last_mut() {
            Some(last) if last.query == query && last.expect == expect => last.count += 1,
            Some(_) | None => groups.push(Rows {
                query,
                change,
                expect,
                is_checked: match expect {
                    Expect::Any => false,
                    Expect::Version => true,
                    Expect::NewKey => distributed || !guarded,
                    Expect::Rows(_) => !guarded,
                },
                first_parameter: parameter,
                count: 1,
                distributed,
                depends_on: None,
            }),
        }
        parameter += columns(change, distributed).len();
    }
    if skips {
        return merged_by_key(groups, on_lost_race == OnLostRace::SkipLocked);
    }
    if let [only] = &groups[..]
        && distributed
        && !only.is_checked
    {
        return only.text();
    }
    let mut checks = "0".to_owned();
    for (place, rows) in groups.iter().enumerate().rev() {
        if !rows.is_checked {
            continue;
        }
        let expected = rows.expect.rows().unwrap_or_default() * rows.count as u64;
        let is_right = match expected {
            // The condition is the whole key, so this row is affected or none.
            1 if rows.count == 1 => format!("EXISTS (SELECT FROM c{place})"),
            _ => format!("(SELECT count(*) FROM c{place}) = {expected}"),
        };
        let failure = failure(rows.query, rows.expect, "NULL", expected);
        checks = format!("CASE WHEN {is_right} THEN {checks} ELSE {failure} END");
    }
    let changes: Vec<String> = (0..)
        .zip(&groups)
        .map(|(place, rows)| format!("c{place} AS ({})", rows.text()))
        .collect();
    format!("WITH {} SELECT {checks}", changes.join(", "))
}

/// Merges row changes that depend on the rows whose versions are unchanged, and returns their keys.
fn merged_by_key(mut groups: Vec<Rows>, skips_locked: bool) -> String {
    let mut parts = Vec::with_capacity(groups.len() + 1);
    let (of_one, of_many) = (
        "EXISTS (SELECT FROM c0)",
        "= ANY (ARRAY(SELECT key FROM c0))",
    );
    let is_one = groups.first().is_some_and(|rows| rows.count == 1);
    // The rows that depend on the first group refer to it by a column of the same name.
    let column = groups.first().map_or("", |rows| rows.change.key());
    for (place, rows) in groups.iter_mut().enumerate() {
        rows.is_checked = false;
        rows.depends_on = match place {
            0 if skips_locked => {
                parts.push(format!("free AS ({})", rows.lock()));
                let is_free = "= ANY (ARRAY(SELECT key FROM free))";
                Some(Dependency::Keys(column, is_free))
            }
            0 => None,
            _ if is_one => Some(Dependency::Condition(of_one)),
            _ => Some(Dependency::Keys(column, of_many)),
        };
        let mut text = rows.text();
        if place == 0 {
            text += &format!(
                " RETURNING {}.{} AS key",
                rows.change.table,
                rows.change.key()
            );
        }
        parts.push(format!("c{place} AS ({text})"));
    }
    format!("WITH {} SELECT key FROM c0", parts.join(", "))
}

/// The columns of the parameters that are sent. In a distributed database, an insert is never
/// skipped, so the parameter that decides it is omitted.
fn columns(change: &RowChange, distributed: bool) -> &'static [(&'static str, Type)] {
    if distributed {
        change.stored()
    } else {
        change.columns
    }
}

/// A parameter with its type.
fn cast(number: usize, kind: Type) -> String {
    let kind = match kind {
        Type::Id => "uuid",
        Type::Int => "bigint",
        Type::Real => "double precision",
        Type::Text => "text",
    };
    format!("CAST(${number} AS {kind})")
}

/// A parameter, as a column of the rows `new`.
fn new_column(name: &str) -> String {
    format!("new.{name}")
}

/// Adjacent changes of the same kind in a merged statement.
struct Rows {
    query: Query,
    change: &'static RowChange,
    expect: Expect,
    is_checked: bool,
    first_parameter: usize,
    count: usize,
    distributed: bool,
    /// What the rows depend on, if that is not checked by a failure.
    depends_on: Option<Dependency>,
}

/// A dependency of row changes on the rows of another change.
#[derive(Clone, Copy)]
enum Dependency {
    /// All of them depend on this condition.
    Condition(&'static str),
    /// Each depends on the row that this column refers to, for which the condition holds.
    Keys(&'static str, &'static str),
}

impl Rows {
    /// SQL that locks the rows, except those that another transaction has locked.
    fn lock(&self) -> String {
        let (table, key) = (self.change.table, self.change.key());
        let numbers = (0..self.count).filter_map(|row| self.numbers(row).next());
        let rows: Vec<String> = numbers
            .map(|(number, _)| format!("(CAST(${number} AS uuid))"))
            .collect();
        format!(
            "SELECT {table}.{key} AS key FROM {table}, (VALUES {}) AS new ({key}) \
             WHERE {table}.tenant_id = $1 AND {table}.{key} = new.{key} \
             AND new.{key} = least(new.{key}) FOR NO KEY UPDATE OF {table} SKIP LOCKED",
            rows.join(", ")
        )
    }

    /// The condition for a dependency, with `AND`.
    fn dependency(&self) -> String {
        match self.depends_on {
            None => String::new(),
            Some(Dependency::Condition(condition)) => format!(" AND {condition}"),
            Some(Dependency::Keys(column, condition)) => {
                let mut columns = self.change.columns.iter();
                let is_parameter = columns.any(|(name, _)| *name == column);
                let row = if is_parameter {
                    "new"
                } else {
                    self.change.table
                };
                format!(" AND {row}.{column} {condition}")
            }
        }
    }

    fn text(&self) -> String {
        let text = if self.distributed && self.count == 1 {
            self.text_of_one()
        } else {
            self.text_of_all()
        };
        if self.is_checked {
            text + " RETURNING 1"
        } else {
            text
        }
    }

    /// The change of one row without a list of rows. Citus plans and renders each statement again on
    /// every execution, and so does the node, so a short one is worth a second form.
    fn text_of_one(&self) -> String {
        let (table, key) = (self.change.table, self.change.key());
        let parameter = |name: &str| {
            let columns = columns(self.change, self.distributed).iter();
            let mut numbers = columns.zip(self.numbers(0));
            let found = numbers.find(|((column, _), _)| *column == name);
            found.map_or_else(String::new, |(_, (number, kind))| cast(number, kind))
        };
        let by_key = format!(
            "{table}.tenant_id = $1 AND {table}.{key} = {}",
            parameter(key)
        );
        match self.change.effect {
            Effect::Update { version, .. } => {
                let set = self.change.assignments(parameter);
                let version: String = version
                    .iter()
                    .map(|(column, name)| format!(" AND {table}.{column} = {}", parameter(name)))
                    .collect();
                format!("UPDATE {table} SET {set} WHERE {by_key}{version}")
            }
            Effect::Insert | Effect::Upsert { .. } => self.insert(None),
            Effect::Delete => format!("DELETE FROM {table} WHERE {by_key}"),
        }
    }

    fn text_of_all(&self) -> String {
        let table = self.change.table;
        let key = self.change.key();
        let depends = self.dependency();
        // `least` of one value has no effect, but makes the planner expect one row and look it up by
        // its key. For several rows it would scan all rows of a tenant, if there were few when the
        // statistics were collected.
        let by_key = format!(
            "{table}.tenant_id = $1 AND {table}.{key} = new.{key} AND new.{key} = least(new.{key})"
        );
        let new = self.new_rows();
        match self.change.effect {
            Effect::Update { version, .. } => {
                let set = self.change.assignments(new_column);
                let version: String = version
                    .iter()
                    .map(|(column, parameter)| format!(" AND {table}.{column} = new.{parameter}"))
                    .collect();
                format!("UPDATE {table} SET {set} FROM {new} WHERE {by_key}{version}{depends}")
            }
            Effect::Insert => self.insert(None),
            Effect::Upsert { unless, .. } => self.insert(unless),
            Effect::Delete => format!("DELETE FROM {table} USING {new} WHERE {by_key}{depends}"),
        }
    }

    /// Citus does not support an insert from a list of rows with parameters; without one, there are
    /// no padding rows, which have no key.
    fn insert(&self, unless: Option<&str>) -> String {
        let table = self.change.table;
        let names: Vec<&str> = self.change.stored().iter().map(|(name, _)| *name).collect();
        let into = format!("INSERT INTO {table} (tenant_id, {})", names.join(", "));
        let rows = if self.distributed {
            let row = |row| {
                let numbers = self.numbers(row).map(|(number, _)| format!("${number}"));
                format!("($1, {})", numbers.collect::<Vec<_>>().join(", "))
            };
            let rows: Vec<String> = (0..self.count).map(row).collect();
            format!("VALUES {}", rows.join(", "))
        } else {
            let unless = unless.map(|unless| self.change.fill(unless, new_column));
            let unless =
                unless.map_or(String::new(), |unless| format!(" AND {unless} IS NOT TRUE"));
            format!(
                "SELECT $1, new.{} FROM {} WHERE new.{} IS NOT NULL{unless}{}",
                names.join(", new."),
                self.new_rows(),
                self.change.key(),
                self.dependency()
            )
        };
        format!("{into} {rows}{}", self.change.on_conflict())
    }

    /// The parameters as rows of the table `new`.
    fn new_rows(&self) -> String {
        let row = |row| {
            let values = self.numbers(row).map(|(number, kind)| cast(number, kind));
            format!("({})", values.collect::<Vec<_>>().join(", "))
        };
        let rows: Vec<String> = (0..self.count).map(row).collect();
        let columns = columns(self.change, self.distributed).iter();
        let names: Vec<&str> = columns.map(|(name, _)| *name).collect();
        format!("(VALUES {}) AS new ({})", rows.join(", "), names.join(", "))
    }

    /// The parameter numbers of a row, with their types.
    fn numbers(&self, row: usize) -> impl Iterator<Item = (usize, Type)> {
        let columns = columns(self.change, self.distributed);
        let first = self.first_parameter + row * columns.len();
        (first..).zip(columns.iter().map(|(_, kind)| *kind))
    }
}

#[cfg(test)]
mod tests;
