//! Plans: facts for decisions, transitions as data, the plan cache, and reads.

pub(crate) mod cache;
pub(crate) mod context;
pub(crate) mod facts;
pub(crate) mod import;
pub(crate) mod lists;
pub(crate) mod read;
pub(crate) mod steps;
pub(crate) mod surroundings;
pub(crate) mod trail;
pub(crate) mod transition;
pub(crate) mod version;
pub(crate) mod write;
