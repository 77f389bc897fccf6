//! The two database backends. Each runs batches of named statements in a transaction, and can
//! begin, commit, roll back and migrate.
//!
//! The backends contain no plan rules, but they depend on the schema. Both map certain constraint
//! violations to a lost race. The PostgreSQL backend also depends on the statements of a
//! transition: it merges them into one message (`postgres/shape.rs`), batches those of concurrent
//! callers (`postgres/group.rs`), recognises a failed version check (`postgres/error.rs`), and owns
//! the plan cache (`memory.rs`).

pub(crate) mod postgres;
pub(crate) mod sqlite;
