//! Plans: facts for decisions, transitions as data, and reads.

pub(crate) mod context;
pub(crate) mod facts;
pub(crate) mod import;
pub(crate) mod lists;
pub(crate) mod read;
pub(crate) mod steps;
pub(crate) mod surroundings;
pub(crate) mod trail;
pub(crate) mod transition;
pub(crate) mod write;
