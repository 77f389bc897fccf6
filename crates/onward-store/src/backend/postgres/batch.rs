//! A batch of named statements: made known to the server, sent, and read back.
//!
//! A statement that must touch a certain number of rows is wrapped so that the server itself fails on
//! another number. Its answer would come too late for that: the COMMIT goes out in the same round
//! trip, right behind it.
//!
//! The changes that every transition makes (the plan's row, its steps, its events, what is due) are
//! sent as one statement: each message costs both sides as much as a small write.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

use deadpool_postgres::ClientWrapper;
use tokio_postgres::Statement as Plan;
use tokio_postgres::types::ToSql;

use super::error;
use super::pipeline::{Sent, in_order};
use crate::error::Error;
use crate::sql::{self, Dialect};
use crate::tx::Statement;
use crate::value::{Columns, Row, Value};

/// What is known about a message once and for all.
struct Shape {
    text: String,
    /// Whether its rows are an answer, and not only the server's own count.
    answers: bool,
    columns: OnceLock<Columns>,
}

/// The names of the statements that go together, each with the rows that it must touch.
type Key = Vec<(&'static str, Option<u64>)>;

static SHAPES: LazyLock<RwLock<HashMap<Key, Arc<Shape>>>> = LazyLock::new(RwLock::default);

impl Shape {
    fn of(run: &[Statement]) -> Arc<Self> {
        let key = run.iter().map(|one| (one.name, one.touches)).collect();
        // Whoever panicked while holding the map was adding one entry: it is whole.
        let known = SHAPES.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(shape) = known.get(&key) {
            return Arc::clone(shape);
        }
        drop(known);
        let shape = Arc::new(Self::new(&key));
        let mut known = SHAPES.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(key).or_insert(shape))
    }

    fn new(key: &Key) -> Self {
        let (text, answers) = match key.as_slice() {
            [(name, None)] => (text(name).to_owned(), true),
            // Its caller sees how many rows there are.
            [(name, Some(_))] if gives_rows(text(name)) => (text(name).to_owned(), true),
            _ => (counted(key), false),
        };
        Self {
            text,
            answers,
            columns: OnceLock::new(),
        }
    }
}

/// The tests of this backend bring their own statements, whose name is their text.
fn text(name: &'static str) -> &'static str {
    match sql::text(name, Dialect::Postgres) {
        "" if cfg!(test) => name,
        text => text,
    }
}

fn gives_rows(text: &str) -> bool {
    let word = |verb: &str| {
        text.split_whitespace()
            .any(|word| word.eq_ignore_ascii_case(verb))
    };
    let is_select = text
        .get(..6)
        .is_some_and(|verb| verb.eq_ignore_ascii_case("select"));
    is_select || word("returning") || !(word("insert") || word("update") || word("delete"))
}

/// The table that a statement changes, where it may be sent in one with its neighbours: it looks at no
/// row that one of them changes, and no two of them change the same row.
fn joins(name: &str) -> Option<&'static str> {
    Some(match name {
        "plan_update" | "plan_move" => "plans",
        "step_update" | "step_update_pair" => "steps",
        "event_insert" => "events",
        "due_sooner" | "due_set" | "due_clear" => "due",
        _ => return None,
    })
}

/// How many of the first statements go together.
fn together(statements: &[Statement]) -> usize {
    let mut tables = Vec::new();
    for statement in statements {
        match joins(statement.name) {
            // A row of these may be changed once: there is one per plan.
            Some(table @ ("plans" | "due")) if tables.contains(&table) => break,
            Some(table) => tables.push(table),
            None => break,
        }
    }
    tables.len().max(1)
}

/// These changes as one statement, failing where one of them touches another number of rows than it
/// must. The function is called only then. A change that is counted is made when it is counted, so none
/// is made behind one that failed: what it would write was decided on a state that is gone.
fn counted(key: &Key) -> String {
    let (mut changes, mut checks) = (Vec::<String>::new(), String::new());
    let (mut before, mut last) = (0, "");
    for (name, touches) in key {
        let change = shifted(text(name), before);
        before += parameters(text(name));
        // Several entries of the trail are one insert of several rows.
        let another = (*name == last && *name == "event_insert")
            .then(|| change.split_once(" VALUES ")?.1.into())
            .flatten();
        last = name;
        match (another, changes.last_mut()) {
            (Some(row), Some(insert)) => {
                insert.push_str(", ");
                insert.push_str(row);
            }
            (Some(_) | None, _) => changes.push(change),
        }
        if let (Some(rows), Some(change)) = (touches, changes.last_mut()) {
            change.push_str(" RETURNING 1");
            let count = format!("(SELECT count(*) FROM c{})", changes.len() - 1);
            let said = name.replace('\'', "''");
            // Writing to a text does not fail.
            let _ = write!(
                checks,
                "WHEN {count} <> {rows} THEN onward_miscounted('{said}', {count}, {rows}) "
            );
        }
    }
    let changes = changes.into_iter().enumerate();
    let changes: Vec<String> = changes
        .map(|(place, change)| format!("c{place} AS ({change})"))
        .collect();
    let changes = changes.join(", ");
    match checks.as_str() {
        "" => format!("WITH {changes} SELECT 0"),
        checks => format!("WITH {changes} SELECT CASE {checks}ELSE 0 END"),
    }
}

/// The numbers of the parameters in a text, with where each begins behind its `$` and ends.
fn numbers(text: &str) -> impl Iterator<Item = (usize, usize, u32)> {
    text.match_indices('$').filter_map(|(place, _)| {
        let digits = &text[place + 1..];
        let length = digits.find(|c: char| !c.is_ascii_digit());
        let end = place + 1 + length.unwrap_or(digits.len());
        Some((place + 1, end, text[place + 1..end].parse().ok()?))
    })
}

/// The highest number of a parameter.
fn parameters(text: &str) -> u32 {
    numbers(text).map(|(.., number)| number).max().unwrap_or(0)
}

/// The text with its parameters numbered from another one on.
fn shifted(text: &str, by: u32) -> String {
    let mut shifted = String::with_capacity(text.len() + 16);
    let mut copied = 0;
    for (begin, end, number) in numbers(text) {
        shifted.push_str(&text[copied..begin]);
        shifted.push_str(&(number + by).to_string());
        copied = end;
    }
    shifted.push_str(&text[copied..]);
    shifted
}

/// Statements that are sent as one, and that the server knows.
struct Message<'b> {
    run: &'b [Statement],
    plan: Plan,
    shape: Arc<Shape>,
}

/// Statements that the server knows.
pub(super) struct Batch<'b>(Vec<Message<'b>>);

impl<'b> Batch<'b> {
    /// Makes the statements known to the server. Those that this connection has not met yet cost one
    /// round trip together.
    pub(super) async fn prepare(
        client: &ClientWrapper,
        mut statements: &'b [Statement],
    ) -> Result<Self, Error> {
        let mut runs = Vec::with_capacity(statements.len());
        while !statements.is_empty() {
            let (run, rest) = statements.split_at(together(statements));
            let shape = Shape::of(run);
            if let Some(nameless) = run.iter().find(|one| text(one.name).is_empty()) {
                return Err(Error::Refused(format!("`{}` has no text", nameless.name)));
            }
            runs.push((run, shape));
            statements = rest;
        }
        let mut distinct: Vec<&Arc<Shape>> = Vec::with_capacity(runs.len());
        for (_, shape) in &runs {
            if !distinct.iter().any(|known| Arc::ptr_eq(known, shape)) {
                distinct.push(shape);
            }
        }
        let asked = distinct.iter().map(|shape| {
            let asked: Sent<'_, Plan> = Box::pin(client.prepare_cached(&shape.text));
            asked
        });
        let plans = in_order(asked.collect()).await;
        let place = |shape| distinct.iter().position(|known| Arc::ptr_eq(known, shape));
        let plans = match plans {
            Ok(plans) => plans,
            Err(broken) => {
                let failed = runs
                    .iter()
                    .find(|(_, shape)| place(shape) == Some(broken.place));
                let name = failed.map_or("", |(run, _)| run[0].name);
                return Err(error::doing(&broken.why, name));
            }
        };
        let places: Vec<Option<usize>> = runs.iter().map(|(_, shape)| place(shape)).collect();
        let known = runs.into_iter().zip(places).filter_map(|(run, place)| {
            let plan = plans.get(place?)?.clone();
            let (run, shape) = run;
            Some(Message { run, plan, shape })
        });
        Ok(Self(known.collect()))
    }

    /// How many messages these are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The messages that run them.
    pub(super) fn messages<'s>(
        &'s self,
        client: &'s ClientWrapper,
    ) -> impl Iterator<Item = Sent<'s, Vec<tokio_postgres::Row>>> {
        self.0.iter().map(move |message| {
            let params = message.run.iter().flat_map(|statement| &statement.params);
            let params: Vec<_> = params.map(|value| value as &(dyn ToSql + Sync)).collect();
            let sent: Sent<'s, _> =
                Box::pin(async move { client.query(&message.plan, &params).await });
            sent
        })
    }

    /// What a message was about: the first of its statements.
    pub(super) fn statement(&self, message: usize) -> Option<&'b Statement> {
        self.0.get(message)?.run.first()
    }

    /// The rows of the answers, of which there is one per message: one list per statement.
    pub(super) fn read(
        &self,
        answers: impl Iterator<Item = Vec<tokio_postgres::Row>>,
    ) -> Result<Vec<Vec<Row>>, Error> {
        let mut all = Vec::with_capacity(self.0.len());
        for (message, rows) in self.0.iter().zip(answers) {
            if !message.shape.answers {
                all.resize(all.len() + message.run.len(), Vec::new());
                continue;
            }
            let columns = message.shape.columns.get_or_init(|| {
                let names = message.plan.columns().iter();
                names.map(|column| column.name().to_owned()).collect()
            });
            let read = |row: tokio_postgres::Row| {
                let cells = (0..row.len()).map(|place| row.try_get(place));
                let values: Result<Vec<Value>, _> = cells.collect();
                values.map(|values| Row::new(Arc::clone(columns), values))
            };
            let rows: Result<Vec<Row>, _> = rows.into_iter().map(read).collect();
            let failed = |why| error::doing(&why, message.run[0].name);
            all.push(rows.map_err(failed)?);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_counted_and_a_question_is_not() {
        assert!(gives_rows("select a FROM t FOR NO KEY UPDATE"));
        assert!(gives_rows("WITH a AS (SELECT 1) SELECT a"));
        assert!(gives_rows("INSERT INTO t VALUES ($1) RETURNING a"));
        assert!(!gives_rows("UPDATE t SET a = $2 WHERE b = $1"));
        assert_eq!(
            counted(&vec![("UPDATE t SET a = $2 WHERE b = $10", Some(3))]),
            "WITH c0 AS (UPDATE t SET a = $2 WHERE b = $10 RETURNING 1) SELECT CASE WHEN \
             (SELECT count(*) FROM c0) <> 3 THEN onward_miscounted('UPDATE t SET a = $2 WHERE b = \
             $10', (SELECT count(*) FROM c0), 3) ELSE 0 END"
        );
    }

    #[test]
    fn changes_in_one_statement_keep_their_parameters_apart() {
        let (one, two) = (
            "UPDATE t SET a = $2 WHERE b = $1",
            "DELETE FROM u WHERE c = $1",
        );
        assert_eq!(
            counted(&vec![(one, None), (two, None)]),
            "WITH c0 AS (UPDATE t SET a = $2 WHERE b = $1), \
             c1 AS (DELETE FROM u WHERE c = $3) SELECT 0"
        );
        let events = counted(&vec![("event_insert", None), ("event_insert", None)]);
        assert_eq!(events.matches("INSERT").count(), 1, "{events}");
        let each = parameters(text("event_insert"));
        assert_eq!(parameters(&events), 2 * each, "{events}");
    }

    #[test]
    fn a_plan_is_changed_once_in_a_statement() {
        let run = |names: &[&'static str]| {
            let statements = names
                .iter()
                .map(|name| Statement::outside(name, Vec::new()));
            together(&statements.collect::<Vec<_>>())
        };
        let transition = ["plan_update", "step_update", "step_update", "event_insert"];
        assert_eq!(run(&transition), 4);
        assert_eq!(run(&["plan_update", "event_insert", "plan_move"]), 2);
        assert_eq!(run(&["event_insert", "due_set", "due_sooner"]), 2);
        assert_eq!(run(&["event_insert", "steps_settle", "event_insert"]), 1);
        assert_eq!(run(&["plan_touch", "plan_update"]), 1);
    }
}
