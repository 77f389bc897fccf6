//! The first pass: user rows with nothing in them go.
//!
//! Nothing is: no text but blanks, no attachment, no result, no call of a known tool, and no mark that
//! the row waits to be sent. Rows of anybody else stay, blank or not.

use super::{Part, Repair, Role, Row, What};

pub(super) fn drop<'m, 'a>(
    mut rows: Vec<Row<'m, 'a>>,
    repairs: &mut Vec<Repair>,
) -> Vec<Row<'m, 'a>> {
    rows.retain(|row| {
        let message = &row.message;
        let blank = message.role == Role::User
            && !message.is_queued
            && message.parts.iter().all(is_nothing);
        if blank {
            repairs.push(Repair::of_row(What::BlankRow, row.index));
        }
        !blank
    });
    rows
}

fn is_nothing(part: &Part<'_>) -> bool {
    match part {
        Part::Text(text) => text.trim().is_empty(),
        Part::Call(call) => call.tool.is_none(),
        Part::Answer(_) | Part::Hosted(_) | Part::Served(_) | Part::Other => false,
    }
}
