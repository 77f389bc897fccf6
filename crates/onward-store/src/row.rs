//! Rows ↔ the core's types. A row that fits no state is an error that names its cell; nothing is
//! guessed.

pub(crate) mod branch;
pub(crate) mod call;
pub(crate) mod event;
pub(crate) mod plan;
pub(crate) mod session;
pub(crate) mod skill;
pub(crate) mod step;
