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
    /// Text of the statement for a database, if it has one. A row change has none.
    pub(crate) fn text(self, dialect: Dialect) -> Option<&'static str> {
        let (sqlite, postgres) = self.texts();
        match dialect {
            Dialect::Sqlite => sqlite,
            Dialect::Postgres => postgres,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_has_a_text_for_both_databases_with_known_exceptions() {
        let in_both = |query: &&Query| {
            let (sqlite, postgres) = query.texts();
            let is_change = query.row_change().is_some();
            sqlite.is_some() != is_change && postgres.is_some() != is_change
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
                let text = query.text(dialect).unwrap_or_default();
                assert!(!text.contains('{'), "`{}`: {text}", query.name());
            }
        }
    }
}
