//! One suite, two databases: every use case of the engine, on SQLite and on PostgreSQL. A difference
//! between them is a bug.
//!
//! A test is a function of a [`Desk`]: an engine on some database, a simulated clock, a tenant of
//! its own. The lists at the end of each file make two tests of each, `sqlite::…` and `postgres::…`;
//! one that is in no list is dead code, which the lints find. After each of them every trail must
//! replay to its rows, unless the test has damaged some on purpose.
//!
//! Most tests share one database and meet each other there, as tenants do. The sweep looks at all
//! tenants, so whoever sweeps has a database alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says by a panic that something does not hold"
)]

mod desk;
mod place;
mod verbs;
mod world;

mod branches;
mod call_log;
mod changes;
mod claims;
mod clocks;
mod context;
mod context_of_plans;
mod corrupt;
mod creation;
mod doctor;
mod documents;
mod extractions;
mod faults;
mod feedback;
mod heard_calls;
mod late_results;
mod law;
mod leads;
mod ledger;
mod lists;
mod long_plans;
mod meaning;
mod memory;
mod migrations;
mod modification;
mod near_by_index;
mod notices;
mod numbers;
mod oversleep;
mod pages;
mod plans;
mod repeats;
mod research;
mod retention;
mod reviews;
mod roles;
mod schedule;
mod search;
mod sessions;
mod skills;
mod stalls;
mod statements;
mod sweep;
mod table;
mod tenants;
mod texts;
mod tokens;
mod transfer;
mod turns;
mod walk;

/// Makes a test of each function, on each database.
macro_rules! on_both_databases {
    ($($name:ident),* $(,)?) => {
        $crate::tests!(sqlite, Sqlite, Shared, $($name),*);
        $crate::tests!(postgres, Postgres, Shared, $($name),*);
    };
    (alone: $($name:ident),* $(,)?) => {
        $crate::tests!(sqlite, Sqlite, Alone, $($name),*);
        $crate::tests!(postgres, Postgres, Alone, $($name),*);
    };
}

/// Makes a test of each function that says something of SQLite alone.
macro_rules! on_sqlite {
    ($($name:ident),* $(,)?) => {
        $crate::tests!(sqlite, Sqlite, Shared, $($name),*);
    };
}

/// Makes a test of each function that says something of PostgreSQL alone.
macro_rules! on_postgres {
    ($($name:ident),* $(,)?) => {
        $crate::tests!(postgres, Postgres, Shared, $($name),*);
    };
}

macro_rules! tests {
    ($module:ident, $kind:ident, $company:ident, $($name:ident),*) => {
        mod $module {
            $(#[test]
            fn $name() {
                use crate::place::{Company, Kind};
                let name = concat!(module_path!(), "::", stringify!($name));
                crate::desk::run(Kind::$kind, Company::$company, name, super::$name);
            })*
        }
    };
}

use {on_both_databases, on_postgres, on_sqlite, tests};
