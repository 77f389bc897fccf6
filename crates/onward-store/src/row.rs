//! Mapping between rows and the types of the core. A row that matches no valid state is an error
//! that names the cell; nothing is guessed.

pub(crate) mod branch;
pub(crate) mod call;
pub(crate) mod event;
pub(crate) mod plan;
pub(crate) mod session;
pub(crate) mod skill;
pub(crate) mod step;

use serde::de::DeserializeOwned;

use crate::codec::json;
use crate::error::Error;
use crate::value::Cells;

/// Reads a cell that may be empty.
fn maybe_mirror<T: DeserializeOwned>(
    cells: &mut Cells,
    column: &'static str,
) -> Result<Option<T>, Error> {
    let text = cells.maybe_text(column)?;
    let mirror = text.map(|text| json::read(&text)).transpose();
    mirror.map_err(|error| cells.corrupt(column, error.to_string()))
}

/// Reads a cell with JSON as a mirror type.
fn mirror<T: DeserializeOwned>(cells: &mut Cells, column: &'static str) -> Result<T, Error> {
    let text = cells.text(column)?;
    json::read(&text).map_err(|error| cells.corrupt(column, error.to_string()))
}
