//! The statements of `query/*.sql`, as an enum that `build.rs` generates: a statement that no file
//! contains does not compile, and a statement that is never sent is dead code.

include!(concat!(env!("OUT_DIR"), "/query.rs"));

/// The database that a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Query {
    /// Text of the statement. The text of a statement that this database does not have is empty,
    /// which the database rejects; a test lists those statements.
    pub(crate) const fn text(self, dialect: Dialect) -> &'static str {
        let (sqlite, postgres) = self.texts();
        let text = match dialect {
            Dialect::Sqlite => sqlite,
            Dialect::Postgres => postgres,
        };
        match text {
            Some(text) => text,
            None => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::sqlite;

    #[test]
    fn every_statement_has_a_text_for_both_databases_with_known_exceptions() {
        let in_both = |query: &&Query| {
            let (sqlite, postgres) = query.texts();
            sqlite.is_some() && (postgres.is_some() != query.row_change().is_some())
        };
        let exceptions: Vec<Query> = ALL
            .iter()
            .filter(|query| !in_both(query))
            .copied()
            .collect();
        let only = [
            Query::ManySigns,
            Query::NearByIndex,
            Query::PlanHeld,
            Query::PlanOfStepHeld,
            Query::PlanTouch,
            Query::PlanUpdate,
            Query::SignChanges,
        ];
        assert_eq!(exceptions, only);
    }

    #[test]
    fn every_fragment_is_inserted() {
        for query in ALL {
            for dialect in [Dialect::Sqlite, Dialect::Postgres] {
                let text = query.text(dialect);
                assert!(!text.contains('{'), "`{}`: {text}", query.name());
            }
        }
    }

    #[test]
    fn every_statement_can_be_prepared_on_sqlite() {
        let file = rusqlite::Connection::open_in_memory().expect("in-memory database");
        for step in sqlite::STEPS {
            file.execute_batch(step).expect("valid migration");
        }
        for query in ALL.iter().filter(|query| query.texts().0.is_some()) {
            let prepared = file.prepare(query.text(Dialect::Sqlite));
            assert!(prepared.is_ok(), "`{}`: {:?}", query.name(), prepared.err());
        }
    }
}
