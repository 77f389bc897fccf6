//! Operation of a database: the sweep, notifications, tenants and tokens, export and import,
//! consistency checks, retention.

pub mod access;
pub mod member;
pub mod notification;
pub mod readiness;
pub mod request_log;
pub mod retention;
pub mod sweep;
pub mod transfer;
pub mod verify;
