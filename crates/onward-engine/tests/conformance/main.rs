//! Conformance suite: every use case of the engine, on SQLite and on PostgreSQL. A difference
//! between the two backends is a bug.
//!
//! A test is a function that takes a [`Harness`](harness::Harness): an engine, a simulated clock
//! and a separate tenant. The macro calls at the end of each file register it as `sqlite::…` and
//! `postgres::…`. After each test, every audit trail must replay to its rows, unless the test
//! corrupted rows on purpose.
//!
//! Most tests share one PostgreSQL database. Tests that run the sweep, which covers all tenants,
//! get exclusive use of a database.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests report failures by panicking"
)]

mod database;
mod embedder;
mod engine_calls;
mod environment;
mod harness;
mod history;
mod operations;
mod random_walk;

mod approval;
mod attention;
mod branches;
mod budget;
mod captured_plans;
mod change_feed;
mod claims;
mod clock_jumps;
mod clock_skew;
mod connections;
mod constraints;
mod corrupt;
mod creation;
mod deadlines;
mod duplicate_submissions;
mod export_import;
mod extractions;
mod fault_injection;
mod feedback;
mod full_text_search;
mod gates;
mod hook_calls;
mod identity;
mod import_validation;
mod late_results;
mod leader_election;
mod lists;
mod long_plans;
mod migrations;
mod modification;
mod notifications;
mod pagination;
mod plan_cache;
mod plan_context;
mod plans;
mod readiness;
mod redo;
mod relocation;
mod request_log;
mod research;
mod result_search;
mod result_values;
mod retention;
mod review_fields;
mod review_scope;
mod reviews;
mod roles;
mod routing;
mod schedule;
mod semantic_search;
mod session_activity;
mod session_status;
mod session_steps;
mod sessions;
mod skills;
mod stalls;
mod statements;
mod step_context;
mod surroundings;
mod sweep;
mod system_sleep;
mod tasks;
mod tenants;
mod text_values;
mod tokens;
mod tool_calls;
mod turns;
mod update_step;
mod usage;
mod vector_index;
mod verify;
mod waiting;

/// Registers each function as a test on both backends.
macro_rules! on_both_databases {
    ($($name:ident),* $(,)?) => {
        $crate::tests!(sqlite, Sqlite, Shared, $($name),*);
        $crate::tests!(postgres, Postgres, Shared, $($name),*);
    };
    (exclusive: $($name:ident),* $(,)?) => {
        $crate::tests!(sqlite, Sqlite, Exclusive, $($name),*);
        $crate::tests!(postgres, Postgres, Exclusive, $($name),*);
    };
}

/// Registers each function as a test on SQLite only.
macro_rules! on_sqlite {
    ($($name:ident),* $(,)?) => {
        $crate::tests!(sqlite, Sqlite, Shared, $($name),*);
    };
}

/// Registers each function as a test on PostgreSQL only.
macro_rules! on_postgres {
    ($($name:ident),* $(,)?) => {
        $crate::tests!(postgres, Postgres, Shared, $($name),*);
    };
    (exclusive: $($name:ident),* $(,)?) => {
        $crate::tests!(postgres, Postgres, Exclusive, $($name),*);
    };
}

macro_rules! tests {
    ($module:ident, $backend:ident, $isolation:ident, $($name:ident),*) => {
        mod $module {
            $(#[test]
            fn $name() {
                use crate::database::Isolation;
                use onward_testbed::Backend;
                let name = concat!(module_path!(), "::", stringify!($name));
                crate::harness::run(Backend::$backend, Isolation::$isolation, name, super::$name);
            })*
        }
    };
}

use {on_both_databases, on_postgres, on_sqlite, tests};
