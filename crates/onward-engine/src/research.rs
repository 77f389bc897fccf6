//! Research material: stored artifacts, outputs and results, their search index, and data that models extract
//! from them.

mod artifact;
pub mod embed;
pub mod extract;
pub mod indexing;
mod library;
mod result;
pub mod search;
pub mod similar;
mod text;

pub use artifact::{DEFAULT_MEDIA_TYPE, NewArtifact, NewOutput, StoredArtifact, StoredOutput};
