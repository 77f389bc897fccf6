//! Mapping between rows and the types of the core. A row that matches no valid state is an error
//! that names the cell; nothing is guessed.

pub(crate) mod branch;
pub(crate) mod call;
pub(crate) mod event;
pub(crate) mod plan;
pub(crate) mod session;
pub(crate) mod skill;
pub(crate) mod step;
pub(crate) mod step_line;

use onward_core::routing::MAX_PRIORITY;
use serde::de::DeserializeOwned;

use crate::codec::{Undecodable, json};
use crate::error::Error;
use crate::value::Cells;

/// Reads a cell that may be empty.
fn maybe_mirror<T: DeserializeOwned>(
    cells: &mut Cells,
    column: &'static str,
) -> Result<Option<T>, Error> {
    let text = cells.maybe_text(column)?;
    let mirror = text.map(|text| json::read(&text)).transpose();
    mirror.map_err(|error| cells.undecodable(column, error))
}

/// Reads a cell with JSON as a mirror type.
fn mirror<T: DeserializeOwned>(cells: &mut Cells, column: &'static str) -> Result<T, Error> {
    let text = cells.text(column)?;
    json::read(&text).map_err(|error| cells.undecodable(column, error))
}

/// Reads the labels of a plan or a step.
pub(crate) fn read_labels(cells: &mut Cells) -> Result<Vec<String>, Error> {
    let text = cells.text("labels")?;
    labels(&text).map_err(|error| cells.undecodable("labels", error))
}

/// The labels in a cell.
pub(crate) fn labels(text: &str) -> Result<Vec<String>, Undecodable> {
    if text.is_empty() {
        Ok(Vec::new())
    } else {
        json::read(text)
    }
}

/// The cell of labels. Equal sets have equal cells, because the labels are sorted.
pub(crate) fn labels_text(labels: &[String]) -> String {
    if labels.is_empty() {
        String::new()
    } else {
        json::write(&labels)
    }
}

/// Reads the priority of a plan or a step.
fn read_priority(cells: &mut Cells) -> Result<u8, Error> {
    let priority = cells.u32("priority")?;
    let priority = u8::try_from(priority).ok().filter(|it| *it <= MAX_PRIORITY);
    priority.ok_or_else(|| cells.corrupt("priority", format!("is not 0 to {MAX_PRIORITY}")))
}
