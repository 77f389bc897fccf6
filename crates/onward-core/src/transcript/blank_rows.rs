//! The first pass: drops blank user rows.
//!
//! A row is blank if it has no text except whitespace, no attachment, no result and no call of a
//! known tool, and is not queued. Rows of other roles are kept.

use super::message::{Part, Role, Row};
use super::repair::{Repair, RepairKind};

pub(super) fn drop<'m, 'a>(
    mut rows: Vec<Row<'m, 'a>>,
    repairs: &mut Vec<Repair>,
) -> Vec<Row<'m, 'a>> {
    rows.retain(|row| {
        let message = &row.message;
        let blank =
            message.role == Role::User && !message.is_queued && message.parts.iter().all(is_blank);
        if blank {
            repairs.push(Repair::for_row(RepairKind::BlankRow, row.index));
        }
        !blank
    });
    rows
}

fn is_blank(part: &Part<'_>) -> bool {
    match part {
        Part::Text(text) => text.trim().is_empty(),
        Part::Call(call) => call.tool.is_none(),
        Part::Result(_) | Part::ServerCall(_) | Part::ServerResult(_) | Part::Other => false,
    }
}
