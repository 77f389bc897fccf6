//! The second pass: a last row of the model that repeats the one before goes.
//!
//! Rows are the same if their texts and their calls are, one by one. Calls are the same if id, tool and
//! input are: two calls that merely look alike are two calls, and dropping one would lose it. Rows
//! without text and calls are not compared, nor is one with a result in it. What is left may be doubled
//! again, so it is looked at until nothing goes: otherwise a second run would find more to do.

use super::{Call, Part, Repair, Role, Row, What};

pub(super) fn drop(rows: &mut Vec<Row<'_, '_>>, repairs: &mut Vec<Repair>) {
    while let [.., before, last] = rows.as_slice() {
        if !repeats(last, before) {
            return;
        }
        repairs.push(Repair::of_row(What::DoubledRow, last.index));
        rows.pop();
    }
}

pub(super) fn repeats<'a>(last: &Row<'_, 'a>, before: &Row<'_, 'a>) -> bool {
    let both = [last, before];
    both.iter().all(|row| row.message.role == Role::Assistant)
        && both.iter().all(|row| !holds_a_result(row))
        && said(last).any(|(text, _, tool)| tool.is_some() || !text.trim().is_empty())
        && said(last).eq(said(before))
        && others(last) == others(before)
}

/// What a row says, for comparing: texts, and calls as they were made.
fn said<'r>(row: &'r Row<'_, '_>) -> impl Iterator<Item = (&'r str, &'r str, Option<&'r str>)> {
    row.message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some((text.as_ref(), "", None)),
        Part::Call(Call {
            id, tool, input, ..
        }) => Some((
            input.as_ref(),
            id.as_ref(),
            Some(tool.as_deref().unwrap_or_default()),
        )),
        Part::Answer(_) | Part::Hosted(_) | Part::Served(_) | Part::Other => None,
    })
}

fn holds_a_result(row: &Row<'_, '_>) -> bool {
    let mut parts = row.message.parts.iter();
    parts.any(|part| matches!(part, Part::Answer(_)))
}

/// How much else there is; what it is, nobody knows here.
fn others(row: &Row<'_, '_>) -> usize {
    let parts = row.message.parts.iter();
    let is_other = |part: &&Part<'_>| match part {
        Part::Hosted(_) | Part::Served(_) | Part::Other => true,
        Part::Text(_) | Part::Call(_) | Part::Answer(_) => false,
    };
    parts.filter(is_other).count()
}
