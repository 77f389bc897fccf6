//! Sign-bit indexes of the database, which speed up the search of tenants with many chunks.

use std::sync::Arc;

/// Number of chunks from which a tenant has a sign-bit index, if the server supports it. With
/// fewer, a full scan takes little longer.
pub const MANY: u64 = 20_000;

/// Chunks of a tenant, embedded by one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Many {
    /// The tenant.
    pub tenant: Arc<str>,
    /// The model.
    pub model: Arc<str>,
    /// Number of dimensions.
    pub width: u64,
    /// Number of chunks, counted up to [`MANY`].
    pub chunks: u64,
}

/// Changes to the sign-bit indexes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Indexed {
    /// Number of indexes built.
    pub made: u64,
    /// Number of indexes dropped because they were no longer needed, or invalid.
    pub dropped: u64,
}

/// State of the database extension that sign-bit indexes require.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VectorExtension {
    /// Created and supported.
    Used {
        /// Its version.
        version: String,
        /// Number of indexes.
        indexes: u64,
    },
    /// Available, but not created in this database.
    Available {
        /// Version that would be created.
        version: String,
    },
    /// Created, but too old.
    TooOld {
        /// Its version.
        version: String,
        /// Supported version that the server provides.
        newer: Option<String>,
    },
    /// Not available in a supported version.
    Missing,
}
