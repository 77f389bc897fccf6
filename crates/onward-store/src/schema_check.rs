//! Differences between the schema of a database and the schema that the migrations create.
//!
//! Each backend describes the objects of a schema in the same form for both sides. Objects that the
//! migrations do not create are ignored, such as the indexes of an administrator, except for kinds of
//! objects that can give access to rows ([`CLOSED`]).

use std::collections::BTreeMap;
use std::fmt;

/// Kinds of objects of which the schema must have no others.
const CLOSED: [&str; 1] = ["policy"];

/// An object of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) kind: String,
    pub(crate) name: String,
    /// What the migrations determine about it, in a form that can be compared.
    pub(crate) definition: String,
}

/// An object that differs from the one that the migrations create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaDeviation {
    /// Kind of the object, such as `index` or `row security`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The difference.
    pub difference: SchemaDifference,
}

/// How an object differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaDifference {
    /// It does not exist.
    Missing,
    /// It has another definition.
    Changed {
        /// The definition in the database.
        found: String,
        /// The definition in the migrations.
        expected: String,
    },
    /// The migrations do not create it.
    Unexpected,
}

impl fmt::Display for SchemaDeviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            name,
            difference,
        } = self;
        write!(f, "{kind} `{name}`: ")?;
        match difference {
            SchemaDifference::Missing => write!(f, "missing"),
            SchemaDifference::Changed { found, expected } => {
                write!(f, "`{found}`, expected `{expected}`")
            }
            SchemaDifference::Unexpected => write!(f, "not part of the schema"),
        }
    }
}

/// Compares the objects of a database with the expected ones. The result is sorted by kind and name.
pub(crate) fn compare(expected: &[Object], found: &[Object]) -> Vec<SchemaDeviation> {
    let by_name = |objects: &[Object]| -> BTreeMap<(String, String), String> {
        let entry = |object: &Object| {
            let key = (object.kind.clone(), object.name.clone());
            (key, object.definition.clone())
        };
        objects.iter().map(entry).collect()
    };
    let (expected, found) = (by_name(expected), by_name(found));
    let mut deviations = Vec::new();
    let mut report = |(kind, name): &(String, String), difference| {
        deviations.push(SchemaDeviation {
            kind: kind.clone(),
            name: name.clone(),
            difference,
        });
    };
    for (key, expected) in &expected {
        match found.get(key) {
            None => report(key, SchemaDifference::Missing),
            Some(found) if found != expected => report(
                key,
                SchemaDifference::Changed {
                    found: found.clone(),
                    expected: expected.clone(),
                },
            ),
            Some(_) => {}
        }
    }
    for key in found.keys() {
        if CLOSED.contains(&key.0.as_str()) && !expected.contains_key(key) {
            report(key, SchemaDifference::Unexpected);
        }
    }
    deviations.sort_by(|one, other| (&one.kind, &one.name).cmp(&(&other.kind, &other.name)));
    deviations
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn object(kind: &str, name: &str, definition: &str) -> Object {
        let [kind, name, definition] = [kind, name, definition].map(str::to_owned);
        Object {
            kind,
            name,
            definition,
        }
    }

    #[test]
    fn reports_missing_and_changed_objects_and_unexpected_policies() {
        let expected = [
            object("index", "a", "x"),
            object("index", "b", "x"),
            object("policy", "p", "x"),
        ];
        assert_eq!(compare(&expected, &expected), []);
        let found = [
            object("index", "b", "y"),
            object("index", "of_an_administrator", "z"),
            object("policy", "p", "x"),
            object("policy", "q", "z"),
        ];
        let deviations = compare(&expected, &found);
        let names = deviations.iter().map(|one| one.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "q"]);
        let differences: Vec<_> = deviations.iter().map(|one| &one.difference).collect();
        assert!(matches!(
            differences[..],
            [
                SchemaDifference::Missing,
                SchemaDifference::Changed { .. },
                SchemaDifference::Unexpected
            ]
        ));
    }
}
