//! SQL text of a message: one statement, or several merged into one.
//!
//! A statement that must affect a certain number of rows is wrapped so that the server fails on any
//! other number: `COMMIT` is sent in the same round trip, so a check of the response would be too
//! late.
//!
//! The writes of every transition (plan, steps, events, due time) are merged: each message costs as
//! much as a small write, and each statement opens a table with all its indexes again.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

use crate::query::{Dialect, Query};
use crate::statement::Statement;
use crate::value::{Columns, Value};

/// SQL text of a message and its metadata, cached for the lifetime of the process.
pub(super) struct Shape {
    pub(super) text: String,
    /// Whether its rows are a result, and not only the check of the row count.
    pub(super) answers: bool,
    pub(super) columns: OnceLock<Columns>,
}

/// Names of the merged statements, each with the number of rows that it must affect.
type Key = Vec<(Query, Option<u64>)>;

static SHAPES: LazyLock<RwLock<HashMap<Key, Arc<Shape>>>> = LazyLock::new(RwLock::default);

impl Shape {
    pub(super) fn of(run: &[&Statement]) -> Arc<Self> {
        let key = run
            .iter()
            .map(|one| (one.query, one.expect.rows()))
            .collect();
        // A panic while adding an entry leaves the map valid.
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
            [(query, _), ..] if joins(*query).is_some() => (joined(key), false),
            [(query, Some(rows))] if !gives_rows(text(*query)) => (counted(*query, *rows), false),
            // The caller checks the number of rows.
            [(query, _), ..] => (text(*query).to_owned(), true),
            [] => (String::new(), false),
        };
        Self {
            text,
            answers,
            columns: OnceLock::new(),
        }
    }
}

/// Parameters of a message: the tenant once, then those of each statement.
pub(super) fn values<'v>(run: &[&'v Statement]) -> impl Iterator<Item = &'v Value> {
    let tenant = run
        .iter()
        .take(1)
        .flat_map(|first| first.params.iter().take(1));
    tenant.chain(run.iter().flat_map(|one| one.params.iter().skip(1)))
}

pub(super) fn text(query: Query) -> &'static str {
    query.text(Dialect::Postgres)
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

/// The table that a statement changes, if it can be merged with adjacent ones: it reads no row that
/// they change, and no two of them change the same row.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "no other statement can be merged"
)]
fn joins(query: Query) -> Option<&'static str> {
    Some(match query {
        Query::PlanMove => "plans",
        Query::StepUpdate | Query::StepAdvance => "steps",
        Query::EventInsert => "events",
        Query::DueSooner | Query::DueSet | Query::DueClear => "due",
        _ => return None,
    })
}

/// Maximum number of merged statements: a message has at most 65,535 parameters, and each number of
/// statements is a separate text.
pub(super) const TOGETHER: usize = 64;

/// Number of leading statements that can be merged.
pub(super) fn together(statements: &[&Statement]) -> usize {
    let mut rows: Vec<(&str, &Value)> = Vec::new();
    let mut length = 0;
    for statement in statements.iter().take(TOGETHER) {
        match joins(statement.query) {
            // These tables have one row per plan, which a statement can change only once.
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

/// A change that fails if it affects another number of rows than required. The function is called
/// only in that case.
fn counted(query: Query, rows: u64) -> String {
    let (change, quoted) = (text(query), query.name().replace('\'', "''"));
    let count = "(SELECT count(*) FROM change)";
    format!(
        "WITH change AS ({change} RETURNING 1) SELECT CASE {count} WHEN {rows} THEN 0 \
         ELSE onward_miscounted('{quoted}', {count}, {rows}) END"
    )
}

/// Merges changes into one statement, which fails if one of them affects another number of rows
/// than required. A counted change is executed when it is counted, so none is executed after one
/// that failed: it would be based on an outdated state. The error does not contain the number of
/// affected rows, because that would be a second count, prepared each time.
///
/// If the plan still has the version that the decision was based on, its steps are unchanged too.
/// So the steps are not counted after a version check: that took 5 % of the whole statement.
fn joined(key: &Key) -> String {
    let guarded = key
        .first()
        .is_some_and(|(query, _)| joins(*query) == Some("plans"));
    let mut changes: Vec<Change> = Vec::new();
    // The first parameter is the tenant, shared by all changes.
    let mut before = 0;
    for (query, touches) in key {
        let text = text(*query);
        let counts = !(guarded && joins(*query) == Some("steps"));
        let touches = touches.filter(|_| counts);
        let one = Change::new(*query, &shifted(text, before), touches);
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
            // The condition is the whole key, so this row is affected or none.
            (1, [_]) => format!("EXISTS (SELECT FROM c{place})"),
            (rows, _) => format!("(SELECT count(*) FROM c{place}) = {rows}"),
        };
        let name = change.query.name();
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

/// One change of a merged statement.
struct Change {
    query: Query,
    /// The text before its rows, the rows, and the text after them. A change without a list of rows
    /// has only a head.
    head: String,
    rows: Vec<String>,
    tail: String,
    touches: Option<u64>,
}

impl Change {
    fn new(query: Query, text: &str, touches: Option<u64>) -> Self {
        let (head, row, tail) = match text.split_once("VALUES ") {
            Some((head, behind)) => {
                let (row, tail) = behind.split_at(closing(behind));
                (head, Some(row.to_owned()), tail)
            }
            None => (text, None, ""),
        };
        Self {
            query,
            head: head.to_owned(),
            rows: row.into_iter().collect(),
            tail: tail.to_owned(),
            touches,
        }
    }

    /// Whether another change is one more row of this one.
    fn takes(&self, other: &Self) -> bool {
        self.query == other.query
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

/// Length of the parenthesised text at the beginning.
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

/// Parameter numbers in a text, each with its start after the `$` and its end.
fn numbers(text: &str) -> impl Iterator<Item = (usize, usize, u32)> {
    text.match_indices('$').filter_map(|(place, _)| {
        let digits = &text[place + 1..];
        let length = digits.find(|c: char| !c.is_ascii_digit());
        let end = place + 1 + length.unwrap_or(digits.len());
        Some((place + 1, end, text[place + 1..end].parse().ok()?))
    })
}

/// Highest parameter number.
fn parameters(text: &str) -> u32 {
    numbers(text).map(|(.., number)| number).max().unwrap_or(0)
}

/// The text with all parameters after the first renumbered by an offset.
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
    fn counts_the_rows_of_changes_but_not_of_queries() {
        assert!(gives_rows("select a FROM t FOR NO KEY UPDATE"));
        assert!(gives_rows("WITH a AS (SELECT 1) SELECT a"));
        assert!(gives_rows("INSERT INTO t VALUES ($1) RETURNING a"));
        assert!(!gives_rows("UPDATE t SET a = $2 WHERE b = $1"));
        assert_eq!(
            counted(Query::Text("UPDATE t SET a = $2 WHERE b = $10"), 3),
            "WITH change AS (UPDATE t SET a = $2 WHERE b = $10 RETURNING 1) SELECT CASE (SELECT \
             count(*) FROM change) WHEN 3 THEN 0 ELSE onward_miscounted('UPDATE t SET a = $2 WHERE \
             b = $10', (SELECT count(*) FROM change), 3) END"
        );
    }

    #[test]
    fn merged_changes_share_the_tenant_and_keep_their_other_parameters() {
        let run = vec![(Query::DueClear, None), (Query::DueSet, Some(1))];
        assert_eq!(
            joined(&run),
            "WITH c0 AS (DELETE FROM due USING (VALUES (CAST($2 AS uuid))) AS old (plan_id) WHERE \
             due.tenant_id = $1 AND due.plan_id = old.plan_id AND old.plan_id = least(old.plan_id)), \
             c1 AS (INSERT INTO due (tenant_id, plan_id, at) VALUES ($1, $3, $4) ON CONFLICT \
             (tenant_id, plan_id) DO UPDATE SET at = excluded.at RETURNING 1) SELECT CASE WHEN \
             EXISTS (SELECT FROM c1) THEN 0 ELSE onward_miscounted('due_set', NULL, 1) END"
        );
        let statements = [
            Statement::without_tenant(Query::DueClear, vec![Value::Int(1), Value::Int(2)]),
            Statement::without_tenant(
                Query::DueSet,
                vec![Value::Int(1), Value::Int(3), Value::Int(4)],
            ),
        ];
        let sent: Vec<&Value> = values(&statements.each_ref()).collect();
        assert_eq!(sent, [1, 2, 3, 4].map(Value::Int).each_ref());
    }

    #[test]
    fn merges_rows_of_one_table_into_one_change() {
        let each = |name| parameters(text(name)) - 1;
        for (name, touches) in [(Query::EventInsert, None), (Query::StepUpdate, Some(1))] {
            let text = joined(&vec![(name, touches); 3]);
            assert!(!text.contains("c1 AS"), "{text}");
            assert_eq!(parameters(&text), 1 + 3 * each(name), "{text}");
            let counted = touches.is_some();
            assert_eq!(text.contains("FROM c0) = 3 THEN"), counted, "{text}");
        }
    }

    #[test]
    fn does_not_count_steps_after_a_version_check() {
        let text = joined(&vec![
            (Query::PlanMove, Some(1)),
            (Query::StepAdvance, Some(1)),
        ]);
        let check = "SELECT CASE WHEN EXISTS (SELECT FROM c0) THEN 0 ELSE onward_miscounted";
        assert!(text.contains(check), "{text}");
        assert!(!text.contains("FROM c1"), "{text}");
    }

    #[test]
    fn changes_a_plan_once_per_statement() {
        let run = |queries: &[(Query, i64)]| {
            let statements = queries.iter().map(|(query, plan)| {
                let plan = match plan {
                    0 => Value::Null,
                    plan => Value::Int(*plan),
                };
                Statement::without_tenant(*query, vec![Value::Int(0), plan])
            });
            let statements: Vec<_> = statements.collect();
            together(&statements.iter().collect::<Vec<_>>())
        };
        let transition = [
            Query::PlanMove,
            Query::StepUpdate,
            Query::StepUpdate,
            Query::EventInsert,
        ];
        assert_eq!(run(&transition.map(|name| (name, 1))), 4);
        let twice = [Query::PlanMove, Query::EventInsert, Query::PlanMove];
        assert_eq!(run(&twice.map(|name| (name, 1))), 2);
        let due = [Query::EventInsert, Query::DueSet, Query::DueSooner];
        assert_eq!(run(&due.map(|name| (name, 1))), 2);
        let odd = [Query::EventInsert, Query::StepsSettle, Query::EventInsert];
        assert_eq!(run(&odd.map(|name| (name, 1))), 1);
        assert_eq!(
            run(&[Query::PlanTouch, Query::PlanMove].map(|name| (name, 1))),
            1
        );
        assert_eq!(run(&[(Query::StepUpdate, 1); 10_000]), TOGETHER);
        let of_two = [
            (Query::PlanMove, 1),
            (Query::PlanMove, 2),
            (Query::DueClear, 0),
        ];
        assert_eq!(run(&of_two), 3);
        assert_eq!(
            run(&[
                (Query::DueClear, 1),
                (Query::DueClear, 0),
                (Query::DueClear, 0)
            ]),
            3
        );
    }
}
