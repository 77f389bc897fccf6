//! Agents and worker processes of the kill, race and outage tests, and the checks of what they
//! recorded.

pub mod audit_trails;
pub mod commits;
pub mod consistency;
pub mod database;
pub mod history;
pub mod plans;
pub mod process;
pub mod random_agent;
pub mod recorder;
pub mod responses;
