//! A batch of named statements: made known to the server, sent, and read back.
//!
//! A statement that must touch a certain number of rows is wrapped so that the server itself fails on
//! another number. Its answer would come too late for that: the COMMIT goes out in the same round
//! trip, right behind it.

use std::collections::HashMap;
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

/// What is known about a statement once and for all.
struct Shape {
    plain: &'static str,
    /// None where it answers with rows: its caller sees how many there are.
    counted: Option<String>,
    columns: OnceLock<Columns>,
}

static SHAPES: LazyLock<RwLock<HashMap<&'static str, Arc<Shape>>>> = LazyLock::new(RwLock::default);

impl Shape {
    fn of(name: &'static str) -> Arc<Self> {
        // Whoever panicked while holding the map was adding one entry: it is whole.
        let known = SHAPES.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(shape) = known.get(name) {
            return Arc::clone(shape);
        }
        drop(known);
        let shape = Arc::new(Self::new(text(name)));
        let mut known = SHAPES.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(name).or_insert(shape))
    }

    fn new(plain: &'static str) -> Self {
        Self {
            plain,
            counted: (!gives_rows(plain)).then(|| counted(plain)),
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

/// The same statement, failing where it touches another number of rows than its last parameter says.
/// The function is called only then; counting alone costs a few microseconds.
fn counted(text: &str) -> String {
    let expected = format!("${}", parameters(text) + 1);
    format!(
        "WITH touched AS ({text} RETURNING 1) SELECT CASE WHEN count(*) = {expected} THEN count(*) \
         ELSE onward_miscounted(count(*), {expected}) END FROM touched"
    )
}

/// The highest number of a parameter.
fn parameters(text: &str) -> u32 {
    let number = |after: &str| {
        let digits = after
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(after.len());
        after[..digits].parse().ok()
    };
    text.split('$')
        .skip(1)
        .filter_map(number)
        .max()
        .unwrap_or(0)
}

/// A statement that the server knows.
struct Known {
    plan: Plan,
    shape: Arc<Shape>,
    /// How many rows it must touch, where the server counts them: its last parameter.
    expected: Option<Value>,
}

/// Statements that the server knows.
pub(super) struct Batch<'b> {
    statements: &'b [Statement],
    known: Vec<Known>,
}

impl<'b> Batch<'b> {
    /// Makes the statements known to the server. Those that this connection has not met yet cost one
    /// round trip together.
    pub(super) async fn prepare(
        client: &ClientWrapper,
        statements: &'b [Statement],
    ) -> Result<Self, Error> {
        let mut places = HashMap::new();
        let mut distinct = Vec::new();
        let mut known = Vec::with_capacity(statements.len());
        for statement in statements {
            let shape = Shape::of(statement.name);
            if shape.plain.is_empty() {
                return Err(Error::Refused(format!("`{}` has no text", statement.name)));
            }
            let expected = match (statement.touches, &shape.counted) {
                (Some(rows), Some(_)) => Some(Value::Int(i64::try_from(rows).unwrap_or(i64::MAX))),
                (Some(_), None) | (None, _) => None,
            };
            let key = (statement.name, expected.is_some());
            let place = *places.entry(key).or_insert_with(|| {
                distinct.push((statement, Arc::clone(&shape), expected.is_some()));
                distinct.len() - 1
            });
            known.push((place, shape, expected));
        }
        let asked = distinct.iter().map(|(_, shape, is_counted)| {
            let text = match (&shape.counted, is_counted) {
                (Some(counted), true) => counted.as_str(),
                (Some(_) | None, _) => shape.plain,
            };
            let asked: Sent<'_, Plan> = Box::pin(client.prepare_cached(text));
            asked
        });
        let plans = match in_order(asked.collect()).await {
            Ok(plans) => plans,
            Err(broken) => {
                let (failed, ..) = &distinct[broken.place];
                return Err(error::running(&broken.why, failed));
            }
        };
        let known = known.into_iter().map(|(place, shape, expected)| Known {
            plan: plans[place].clone(),
            shape,
            expected,
        });
        Ok(Self {
            known: known.collect(),
            statements,
        })
    }

    /// The messages that run them.
    pub(super) fn messages<'s>(
        &'s self,
        client: &'s ClientWrapper,
    ) -> impl Iterator<Item = Sent<'s, Vec<tokio_postgres::Row>>> {
        let both = self.statements.iter().zip(&self.known);
        both.map(move |(statement, known)| {
            let params = statement.params.iter().chain(&known.expected);
            let params: Vec<_> = params.map(|value| value as &(dyn ToSql + Sync)).collect();
            let sent: Sent<'s, _> =
                Box::pin(async move { client.query(&known.plan, &params).await });
            sent
        })
    }

    /// The rows of the answers, of which there is one per statement.
    pub(super) fn read(
        &self,
        answers: impl Iterator<Item = Vec<tokio_postgres::Row>>,
    ) -> Result<Vec<Vec<Row>>, Error> {
        let both = self.statements.iter().zip(&self.known).zip(answers);
        both.map(|((statement, known), rows)| {
            if known.expected.is_some() || rows.is_empty() {
                return Ok(Vec::new());
            }
            let columns = known.shape.columns.get_or_init(|| {
                let names = known.plan.columns().iter();
                names.map(|column| column.name().to_owned()).collect()
            });
            let read = |row: tokio_postgres::Row| {
                let cells = (0..row.len()).map(|place| row.try_get(place));
                let values: Result<Vec<Value>, _> = cells.collect();
                values.map(|values| Row::new(Arc::clone(columns), values))
            };
            let rows: Result<Vec<Row>, _> = rows.into_iter().map(read).collect();
            rows.map_err(|why| error::running(&why, statement))
        })
        .collect()
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
            counted("UPDATE t SET a = $2 WHERE b = $10"),
            "WITH touched AS (UPDATE t SET a = $2 WHERE b = $10 RETURNING 1) SELECT CASE WHEN \
             count(*) = $11 THEN count(*) ELSE onward_miscounted(count(*), $11) END FROM touched"
        );
    }
}
