//! Mapping between rows and the types of the core. A row that matches no valid state is an error
//! that names the cell; nothing is guessed.

pub(crate) mod branch;
pub(crate) mod call;
pub(crate) mod event;
pub(crate) mod plan;
pub(crate) mod session;
pub(crate) mod skill;
pub(crate) mod step;
