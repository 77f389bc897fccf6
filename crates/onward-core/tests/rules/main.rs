//! Tests of the plan rules, one file per topic.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "tests fail by panicking"
)]

mod activity;
mod approval;
mod attention;
mod audit_trail;
mod branches;
mod budget;
mod claims;
mod creation;
mod deadlines;
mod decision_links;
mod dependencies;
mod ended_sessions;
mod failed_dependencies;
mod gates;
mod harness;
mod limits;
mod modification;
mod next_check;
mod no_step;
mod progress;
mod redo;
mod rejections;
mod resume;
mod review_fields;
mod review_scope;
mod reviews;
mod roles;
mod routing;
mod skills;
mod stable_names;
mod stalls;
mod state_machine;
mod transitions;
mod update_step;
