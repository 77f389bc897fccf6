//! The two databases. Each runs batches of statements inside of a transaction, and knows how to
//! begin, commit and migrate; nothing here knows what a plan is.

pub(crate) mod postgres;
pub(crate) mod sqlite;
