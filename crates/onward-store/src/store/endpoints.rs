//! Opens the two ends of a move.

use super::Address;
use crate::backend::relocation::Endpoint;
use crate::backend::{postgres, sqlite};
use crate::error::Error;

impl Address {
    /// The database as the source of a move; it cannot be changed meanwhile.
    pub(crate) async fn open_source(&self) -> Result<Box<dyn Endpoint>, Error> {
        match self {
            Address::File(path) => sqlite::open_source(path),
            Address::Server(url) => postgres::open_source(url).await,
        }
    }

    /// The database as the target of a move.
    pub(crate) async fn open_target(&self) -> Result<Box<dyn Endpoint>, Error> {
        match self {
            Address::File(path) => sqlite::open_target(path),
            Address::Server(url) => postgres::open_target(url).await,
        }
    }
}
