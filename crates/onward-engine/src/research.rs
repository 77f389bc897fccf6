//! Research material: stored artifacts and outputs, their search index, and data that models extract
//! from them.

mod artifact;
pub mod embed;
pub mod extract;
pub mod indexing;
mod library;
pub mod search;
mod text;

pub use artifact::{DEFAULT_MEDIA_TYPE, NewArtifact, NewOutput, StoredArtifact, StoredOutput};
