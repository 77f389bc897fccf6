//! What Onward remembers: plans, steps, branches and their audit trail, on SQLite and
//! PostgreSQL.
//!
//! Nothing lives here yet. When it does, this crate holds the migrations, the queries, the
//! mapping between rows and the types of `onward-core`, and one commit that writes events and
//! the rows they change in one transaction, or neither.
//!
//! The wall it stands behind: it is the only crate that may depend on a database driver or
//! contain SQL, and it depends on no crate of the workspace but `onward-core`. It knows no rule
//! about plans; whether a change is legal was decided before it got here.
