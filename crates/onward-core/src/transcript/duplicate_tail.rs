//! The second pass: drops a last row of the model that repeats the previous row.
//!
//! Rows are equal if their texts and calls are. Calls are equal if id, tool and input are: calls
//! that merely look alike are distinct. Rows without text and calls, and rows with a result, are
//! not compared. The pass repeats until nothing is dropped, which makes it idempotent.

use super::message::{Call, Part, Role, Row};
use super::repair::{Repair, RepairKind};

pub(super) fn drop(rows: &mut Vec<Row<'_, '_>>, repairs: &mut Vec<Repair>) {
    while let [.., before, last] = rows.as_slice() {
        if !repeats(last, before) {
            return;
        }
        repairs.push(Repair::for_row(RepairKind::DuplicateRow, last.index));
        rows.pop();
    }
}

pub(super) fn repeats<'a>(last: &Row<'_, 'a>, before: &Row<'_, 'a>) -> bool {
    let both = [last, before];
    both.iter().all(|row| row.message.role == Role::Assistant)
        && both.iter().all(|row| !has_result(row))
        && texts_and_calls(last).any(|(text, _, tool)| tool.is_some() || !text.trim().is_empty())
        && texts_and_calls(last).eq(texts_and_calls(before))
        && opaque_parts(last) == opaque_parts(before)
}

/// The texts and calls of a row, for comparison.
fn texts_and_calls<'r>(
    row: &'r Row<'_, '_>,
) -> impl Iterator<Item = (&'r str, &'r str, Option<&'r str>)> {
    row.message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some((text.as_ref(), "", None)),
        Part::Call(Call {
            id, tool, input, ..
        }) => Some((
            input.as_ref(),
            id.as_ref(),
            Some(tool.as_deref().unwrap_or_default()),
        )),
        Part::Result(_) | Part::ServerCall(_) | Part::ServerResult(_) | Part::Other => None,
    })
}

fn has_result(row: &Row<'_, '_>) -> bool {
    let mut parts = row.message.parts.iter();
    parts.any(|part| matches!(part, Part::Result(_)))
}

/// The number of parts with opaque content.
fn opaque_parts(row: &Row<'_, '_>) -> usize {
    let parts = row.message.parts.iter();
    let is_other = |part: &&Part<'_>| match part {
        Part::ServerCall(_) | Part::ServerResult(_) | Part::Other => true,
        Part::Text(_) | Part::Call(_) | Part::Result(_) => false,
    };
    parts.filter(is_other).count()
}
