//! Operation of a database: the sweep, notifications, tenants and tokens, export and import,
//! moves to another database, consistency checks, retention.

pub mod access;
pub mod member;
pub mod notification;
pub mod readiness;
pub mod relocate;
pub mod request_log;
pub mod retention;
pub mod sweep;
pub mod totals;
pub mod transfer;
pub mod verify;
