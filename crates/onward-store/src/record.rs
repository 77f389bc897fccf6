//! Records besides plans: one repository per noun.

pub(crate) mod artifact;
pub(crate) mod due;
pub(crate) mod extraction;
pub(crate) mod feedback;
pub(crate) mod formatting_note;
pub(crate) mod integrity;
pub(crate) mod journal;
pub(crate) mod notification;
pub(crate) mod output;
pub(crate) mod request_log;
pub(crate) mod result;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod skill;
pub(crate) mod task;
pub(crate) mod tenant;
pub(crate) mod text;
pub(crate) mod token;
pub(crate) mod tool_call;
pub(crate) mod totals;
pub(crate) mod usage;
pub(crate) mod vector;
