//! The texts of messages: one statement, or several that are sent as one.
//!
//! A statement that must touch a certain number of rows is wrapped so that the server itself fails on
//! another number. Its answer would come too late for that: the COMMIT goes out in the same round
//! trip, right behind it.
//!
//! The changes that every transition makes (the plan's row, its steps, its events, what is due) are
//! sent as one statement: each message costs both sides as much as a small write, and each statement
//! prepares a table with all of its indexes anew. So several rows of one table are one change.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

use crate::sql::{self, Dialect};
use crate::tx::Statement;
use crate::value::{Columns, Value};

/// What is known about a message once and for all.
pub(super) struct Shape {
    pub(super) text: String,
    /// Whether its rows are an answer, and not only the server's own count.
    pub(super) answers: bool,
    pub(super) columns: OnceLock<Columns>,
}

/// The names of the statements that go together, each with the rows that it must touch.
type Key = Vec<(&'static str, Option<u64>)>;

static SHAPES: LazyLock<RwLock<HashMap<Key, Arc<Shape>>>> = LazyLock::new(RwLock::default);

impl Shape {
    pub(super) fn of(run: &[&Statement]) -> Arc<Self> {
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
            [(name, _), ..] if joins(name).is_some() => (joined(key), false),
            [(name, Some(rows))] if !gives_rows(text(name)) => (counted(name, *rows), false),
            // Its caller sees how many rows there are.
            [(name, _), ..] => (text(name).to_owned(), true),
            [] => (String::new(), false),
        };
        Self {
            text,
            answers,
            columns: OnceLock::new(),
        }
    }
}

/// The values that are sent for it: the tenant once, and each statement's own.
pub(super) fn values<'v>(run: &[&'v Statement]) -> impl Iterator<Item = &'v Value> {
    let tenant = run
        .iter()
        .take(1)
        .flat_map(|first| first.params.iter().take(1));
    tenant.chain(run.iter().flat_map(|one| one.params.iter().skip(1)))
}

/// The tests of this backend bring their own statements, whose name is their text.
pub(super) fn text(name: &'static str) -> &'static str {
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
        "plan_move" => "plans",
        "step_update" | "step_advance" => "steps",
        "event_insert" => "events",
        "due_sooner" | "due_set" | "due_clear" => "due",
        _ => return None,
    })
}

/// So many statements go together at most: what is sent as one may have 65,535 parameters, and each
/// number of statements is a text of its own.
pub(super) const TOGETHER: usize = 64;

/// How many of the first statements go together.
pub(super) fn together(statements: &[&Statement]) -> usize {
    let mut rows: Vec<(&str, &Value)> = Vec::new();
    let mut length = 0;
    for statement in statements.iter().take(TOGETHER) {
        match joins(statement.name) {
            // A row of these may be changed once: there is one per plan.
            Some(table @ ("plans" | "due")) => {
                let plan = statement.params.get(1).unwrap_or(&Value::Null);
                let row = (table, plan);
                if *plan != Value::Null && rows.contains(&row) {
                    break;
                }
                rows.push(row);
            }
            Some(_) => {}
            None => break,
        }
        length += 1;
    }
    length.max(1)
}

/// A change that fails where it touches another number of rows than it must. The function is called
/// only then.
fn counted(name: &'static str, rows: u64) -> String {
    let (change, said) = (text(name), name.replace('\'', "''"));
    let count = "(SELECT count(*) FROM change)";
    format!(
        "WITH change AS ({change} RETURNING 1) SELECT CASE {count} WHEN {rows} THEN 0 \
         ELSE onward_miscounted('{said}', {count}, {rows}) END"
    )
}

/// These changes as one statement, failing where one of them touches another number of rows than it
/// must. A change that is counted is made when it is counted, so none is made behind one that failed:
/// what it would write was decided on a state that is gone. How many rows it touched is not said, for
/// that would be a second count, which is prepared each time.
///
/// Where the plan's version is still the one that was decided on, its steps are those that it had then.
/// So they are not counted behind it: that took a twentieth of the whole.
fn joined(key: &Key) -> String {
    let guarded = key
        .first()
        .is_some_and(|(name, _)| joins(name) == Some("plans"));
    let mut changes: Vec<Change> = Vec::new();
    // The first parameter is everybody's tenant.
    let mut before = 0;
    for (name, touches) in key {
        let text = text(name);
        let counts = !(guarded && joins(name) == Some("steps"));
        let touches = touches.filter(|_| counts);
        let one = Change::new(name, &shifted(text, before), touches);
        before += parameters(text).saturating_sub(1);
        match changes.last_mut() {
            Some(last) if last.takes(&one) => last.take(one),
            Some(_) | None => changes.push(one),
        }
    }
    let mut checks = "0".to_owned();
    for (place, change) in changes.iter().enumerate().rev() {
        let Some(rows) = change.touches else { continue };
        let is_right = match (rows, change.rows.as_slice()) {
            // By its whole key, so it is this row or none.
            (1, [_]) => format!("EXISTS (SELECT FROM c{place})"),
            (rows, _) => format!("(SELECT count(*) FROM c{place}) = {rows}"),
        };
        let name = change.name;
        checks = format!(
            "CASE WHEN {is_right} THEN {checks} ELSE onward_miscounted('{name}', NULL, {rows}) END"
        );
    }
    let changes: Vec<String> = (0..)
        .zip(&changes)
        .map(|(place, change)| format!("c{place} AS ({})", change.text()))
        .collect();
    format!("WITH {} SELECT {checks}", changes.join(", "))
}

/// A change that is one of several in a statement.
struct Change {
    name: &'static str,
    /// What stands before its rows, its rows, and what stands behind them. One without a list of rows is
    /// all head.
    head: String,
    rows: Vec<String>,
    tail: String,
    touches: Option<u64>,
}

impl Change {
    fn new(name: &'static str, text: &str, touches: Option<u64>) -> Self {
        let (head, row, tail) = match text.split_once("VALUES ") {
            Some((head, behind)) => {
                let (row, tail) = behind.split_at(closing(behind));
                (head, Some(row.to_owned()), tail)
            }
            None => (text, None, ""),
        };
        Self {
            name,
            head: head.to_owned(),
            rows: row.into_iter().collect(),
            tail: tail.to_owned(),
            touches,
        }
    }

    /// Whether another change is one more row of this one.
    fn takes(&self, other: &Self) -> bool {
        self.name == other.name
            && !self.rows.is_empty()
            && (&self.head, &self.tail) == (&other.head, &other.tail)
    }

    fn take(&mut self, other: Self) {
        self.rows.extend(other.rows);
        let both = self.touches.zip(other.touches);
        self.touches = both.map(|(one, other)| one + other);
    }

    fn text(&self) -> String {
        let Self {
            head, rows, tail, ..
        } = self;
        let returning = self.touches.map_or("", |_| " RETURNING 1");
        match rows.as_slice() {
            [] => format!("{head}{returning}"),
            rows => format!("{head}VALUES {}{tail}{returning}", rows.join(", ")),
        }
    }
}

/// The length of what stands in parentheses at the beginning of a text.
fn closing(text: &str) -> usize {
    let mut open = 0u32;
    for (place, letter) in text.char_indices() {
        match letter {
            '(' => open += 1,
            ')' if open == 1 => return place + 1,
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    text.len()
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

/// The text with its parameters behind the first numbered from another one on.
fn shifted(text: &str, by: u32) -> String {
    let mut shifted = String::with_capacity(text.len() + 16);
    let mut copied = 0;
    for (begin, end, number) in numbers(text).filter(|(.., number)| *number > 1) {
        shifted.push_str(&text[copied..begin]);
        shifted.push_str(&(number + by).to_string());
        copied = end;
    }
    shifted.push_str(&text[copied..]);
    shifted
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
            counted("UPDATE t SET a = $2 WHERE b = $10", 3),
            "WITH change AS (UPDATE t SET a = $2 WHERE b = $10 RETURNING 1) SELECT CASE (SELECT \
             count(*) FROM change) WHEN 3 THEN 0 ELSE onward_miscounted('UPDATE t SET a = $2 WHERE \
             b = $10', (SELECT count(*) FROM change), 3) END"
        );
    }

    #[test]
    fn changes_in_one_statement_have_their_tenant_in_common_and_keep_the_rest_apart() {
        let run = vec![("due_clear", None), ("due_set", Some(1))];
        assert_eq!(
            joined(&run),
            "WITH c0 AS (DELETE FROM due USING (VALUES (CAST($2 AS uuid))) AS old (plan_id) WHERE \
             due.tenant_id = $1 AND due.plan_id = old.plan_id AND old.plan_id = least(old.plan_id)), \
             c1 AS (INSERT INTO due (tenant_id, plan_id, at) VALUES ($1, $3, $4) ON CONFLICT \
             (tenant_id, plan_id) DO UPDATE SET at = excluded.at RETURNING 1) SELECT CASE WHEN \
             EXISTS (SELECT FROM c1) THEN 0 ELSE onward_miscounted('due_set', NULL, 1) END"
        );
        let statements = [
            Statement::outside("due_clear", vec![Value::Int(1), Value::Int(2)]),
            Statement::outside("due_set", vec![Value::Int(1), Value::Int(3), Value::Int(4)]),
        ];
        let sent: Vec<&Value> = values(&statements.each_ref()).collect();
        assert_eq!(sent, [1, 2, 3, 4].map(Value::Int).each_ref());
    }

    #[test]
    fn rows_of_one_table_are_one_change() {
        let each = |name| parameters(text(name)) - 1;
        for (name, touches) in [("event_insert", None), ("step_update", Some(1))] {
            let text = joined(&vec![(name, touches); 3]);
            assert!(!text.contains("c1 AS"), "{text}");
            assert_eq!(parameters(&text), 1 + 3 * each(name), "{text}");
            let counted = touches.is_some();
            assert_eq!(text.contains("FROM c0) = 3 THEN"), counted, "{text}");
        }
    }

    #[test]
    fn behind_the_version_of_a_plan_its_steps_are_not_counted() {
        let text = joined(&vec![("plan_move", Some(1)), ("step_advance", Some(1))]);
        let check = "SELECT CASE WHEN EXISTS (SELECT FROM c0) THEN 0 ELSE onward_miscounted";
        assert!(text.contains(check), "{text}");
        assert!(!text.contains("FROM c1"), "{text}");
    }

    #[test]
    fn a_plan_is_changed_once_in_a_statement() {
        let run = |names: &[(&'static str, i64)]| {
            let statements = names.iter().map(|(name, plan)| {
                let plan = match plan {
                    0 => Value::Null,
                    plan => Value::Int(*plan),
                };
                Statement::outside(name, vec![Value::Int(0), plan])
            });
            let statements: Vec<_> = statements.collect();
            together(&statements.iter().collect::<Vec<_>>())
        };
        let transition = ["plan_move", "step_update", "step_update", "event_insert"];
        assert_eq!(run(&transition.map(|name| (name, 1))), 4);
        let twice = ["plan_move", "event_insert", "plan_move"];
        assert_eq!(run(&twice.map(|name| (name, 1))), 2);
        let due = ["event_insert", "due_set", "due_sooner"];
        assert_eq!(run(&due.map(|name| (name, 1))), 2);
        let odd = ["event_insert", "steps_settle", "event_insert"];
        assert_eq!(run(&odd.map(|name| (name, 1))), 1);
        assert_eq!(run(&["plan_touch", "plan_move"].map(|name| (name, 1))), 1);
        assert_eq!(run(&[("step_update", 1); 10_000]), TOGETHER);
        let of_two = [("plan_move", 1), ("plan_move", 2), ("due_clear", 0)];
        assert_eq!(run(&of_two), 3);
        assert_eq!(
            run(&[("due_clear", 1), ("due_clear", 0), ("due_clear", 0)]),
            3
        );
    }
}
