//! SQL texts of statements for SQLite. Each row change is rendered as one statement.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::error::Error;
use crate::query::{Dialect, Query};
use crate::row_change::{Effect, ROW_CHANGES, RowChange};

/// Texts of the row changes, each with the number of its parameters.
static ROW_CHANGE_TEXTS: LazyLock<HashMap<Query, (String, usize)>> = LazyLock::new(|| {
    let all = ROW_CHANGES.iter();
    all.map(|(query, change)| (*query, (render(change), 1 + change.stored().len())))
        .collect()
});

/// Text of a statement, and the number of its parameters if further ones are omitted.
pub(super) fn text(query: Query) -> Result<(&'static str, Option<usize>), Error> {
    if let Some(text) = query.text(Dialect::Sqlite) {
        return Ok((text, None));
    }
    match ROW_CHANGE_TEXTS.get(&query) {
        Some((text, parameters)) => Ok((text, Some(*parameters))),
        None => Err(Error::refused(format!("`{}` has no text", query.name()))),
    }
}

/// SQL of a row change. The first parameter is the tenant. There is one writer, so no row changes
/// between the decision and the statement, and `unless` is omitted.
fn render(change: &RowChange) -> String {
    let (table, key) = (change.table, change.key());
    let parameter = |name: &str| {
        let place = change
            .columns
            .iter()
            .position(|(column, _)| *column == name);
        format!("?{}", place.map_or(0, |place| place + 2))
    };
    let by_key = format!("WHERE tenant_id = ?1 AND {key} = {}", parameter(key));
    match change.effect {
        Effect::Update { version, .. } => {
            let version: String = version
                .iter()
                .map(|(column, name)| format!(" AND {column} = {}", parameter(name)))
                .collect();
            let set = change.assignments(parameter);
            format!("UPDATE {table} SET {set} {by_key}{version}")
        }
        Effect::Insert | Effect::Upsert { .. } => {
            let columns = change.stored().iter().map(|(column, _)| *column);
            let (columns, values): (Vec<_>, Vec<_>) =
                columns.map(|column| (column, parameter(column))).unzip();
            format!(
                "INSERT INTO {table} (tenant_id, {}) VALUES (?1, {}){}",
                columns.join(", "),
                values.join(", "),
                change.on_conflict()
            )
        }
        Effect::Delete => format!("DELETE FROM {table} {by_key}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::sqlite::migrate::STEPS;
    use crate::query::ALL;

    #[test]
    fn renders_row_changes() {
        for (query, expected) in [
            (
                Query::DueSooner,
                "INSERT INTO due (tenant_id, plan_id, at) VALUES (?1, ?2, ?3) ON CONFLICT \
                 (tenant_id, plan_id) DO UPDATE SET at = excluded.at WHERE excluded.at < due.at",
            ),
            (
                Query::DueClear,
                "DELETE FROM due WHERE tenant_id = ?1 AND plan_id = ?2",
            ),
        ] {
            assert_eq!(text(query).unwrap().0, expected);
        }
        let (text, parameters) = text(Query::PlanMove).unwrap();
        assert_eq!(parameters, Some(22));
        assert!(text.starts_with("UPDATE plans SET status = ?3, "), "{text}");
        let end = "WHERE tenant_id = ?1 AND plan_id = ?2 AND seq = ?21 AND version_tag = ?22";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn every_statement_can_be_prepared() {
        let file = rusqlite::Connection::open_in_memory().unwrap();
        for step in STEPS {
            file.execute_batch(step).unwrap();
        }
        let mut without_text = Vec::new();
        for query in ALL {
            let Ok((text, parameters)) = text(*query) else {
                without_text.push(*query);
                continue;
            };
            let prepared = file.prepare(text).unwrap();
            if let Some(parameters) = parameters {
                assert_eq!(prepared.parameter_count(), parameters, "{text}");
            }
        }
        assert_eq!(
            without_text,
            [
                Query::ManySigns,
                Query::NearByIndex,
                Query::PlanHeld,
                Query::PlanOfStepHeld
            ]
        );
    }
}
