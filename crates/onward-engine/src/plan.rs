//! Plans: the commands that change them, the queries that read them, and the context that agents
//! receive. One file per use case.

mod approval;
pub(crate) mod attention;
pub mod audit;
pub mod context;
pub mod create;
pub mod dependency;
pub mod feedback;
pub mod history;
mod in_progress;
pub mod journal;
pub(crate) mod late_results;
mod lifecycle;
pub mod list;
pub mod modify;
pub mod next_step;
pub mod peek;
pub mod skill;
pub mod status;
pub mod step;
pub mod submit;
pub mod task;
