//! Comparison of a file with the schema that the migrations create in an empty database.

use super::error;
use super::file::File;
use super::migrate::STEPS;
use crate::error::Error;
use crate::schema_check::{Object, SchemaDeviation, compare};

/// Tables, indexes, triggers and views, with the statements that created them. An index of a
/// constraint has no statement, and another version of SQLite may create the tables of a full-text
/// index with another one.
const OBJECTS: &str = "SELECT type, name, CASE WHEN EXISTS (SELECT 1 FROM sqlite_schema AS virtual \
    WHERE virtual.sql LIKE 'CREATE VIRTUAL TABLE%' AND item.name GLOB virtual.name || '_*') \
    THEN '' ELSE coalesce(sql, '') END FROM sqlite_schema AS item";

/// The differences.
pub(crate) fn deviations(file: &File) -> Result<Vec<SchemaDeviation>, Error> {
    let failed = |why| error::running(why, "schema comparison");
    let migrated = rusqlite::Connection::open_in_memory().map_err(failed)?;
    for step in STEPS {
        migrated.execute_batch(step).map_err(failed)?;
    }
    let expected = objects(&migrated).map_err(failed)?;
    let found = objects(&file.file).map_err(failed)?;
    Ok(compare(&expected, &found))
}

fn objects(connection: &rusqlite::Connection) -> rusqlite::Result<Vec<Object>> {
    let mut query = connection.prepare(OBJECTS)?;
    let rows = query.query_map([], |row| {
        let statement: String = row.get(2)?;
        Ok(Object {
            kind: row.get(0)?,
            name: row.get(1)?,
            definition: without_comments(&statement),
        })
    })?;
    rows.collect()
}

/// A statement without its comments and line breaks. No literal of the schema contains `--`.
fn without_comments(statement: &str) -> String {
    let lines = statement.lines().map(|line| line.split("--").next());
    let words = lines.flatten().flat_map(str::split_whitespace);
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use onward_testbed::TestDir;

    use super::*;
    use crate::backend::sqlite::{migrate, paths};
    use crate::schema_check::SchemaDifference;

    #[test]
    fn reports_every_object_that_is_missing_or_changed() {
        let dir = TestDir::new("catalog");
        let path = dir.path().join("onward.db");
        paths::create(&path).unwrap();
        let file = File::open(&path).unwrap();
        migrate::migrate(&file, &path).unwrap();
        assert_eq!(deviations(&file).unwrap(), []);
        let own = "CREATE INDEX of_an_administrator ON plans (name)";
        file.file.execute_batch(own).unwrap();
        assert_eq!(deviations(&file).unwrap(), []);
        // Everything that can be dropped is missed.
        for expected in objects(&file.file).unwrap() {
            let Object { kind, name, .. } = expected;
            if ["index", "trigger", "view"].contains(&kind.as_str())
                && name != "of_an_administrator"
                && !name.starts_with("sqlite_")
            {
                file.file.execute_batch("SAVEPOINT test").unwrap();
                let drop = format!("DROP {kind} {name}");
                file.file.execute_batch(&drop).unwrap();
                let found = deviations(&file).unwrap();
                let is_missing = |one: &SchemaDeviation| {
                    one.name == name && one.difference == SchemaDifference::Missing
                };
                assert!(found.iter().any(is_missing), "{kind} {name}: {found:?}");
                let undo = "ROLLBACK TO test; RELEASE test";
                file.file.execute_batch(undo).unwrap();
            }
        }
        let change = "DROP TRIGGER events_reject_update; \
            CREATE TRIGGER events_reject_update BEFORE UPDATE ON events BEGIN SELECT 1; END";
        file.file.execute_batch(change).unwrap();
        let found = deviations(&file).unwrap();
        assert!(
            matches!(
                &found[..],
                [SchemaDeviation {
                    difference: SchemaDifference::Changed { .. },
                    ..
                }]
            ),
            "{found:?}"
        );
    }
}
