//! Renames calls that have the id of another call in their row.
//!
//! The APIs reject such a row. The first call keeps the id and the first result. Each further call
//! gets a new id, and so does its result, so that every call is answered once.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Api, duplicate_ids};
use super::message::{Message, Part, Row};
use super::repair::{Repair, RepairKind};
use super::{anthropic, chat, responses};

/// The changed rows by index.
pub(super) fn rename(
    api: Api,
    sources: &[&str],
    messages: &[Message<'_>],
    rows: &[Row<'_, '_>],
    repairs: &mut Vec<Repair>,
) -> BTreeMap<usize, String> {
    let mut renamed: BTreeMap<usize, String> = BTreeMap::new();
    let duplicates = duplicate_ids(rows, api);
    if duplicates.is_empty() {
        return renamed;
    }
    let parts = messages.iter().flat_map(|message| &message.parts);
    let mut ids: BTreeSet<String> = parts
        .filter_map(|part| match part {
            Part::Call(call) | Part::ServerCall(call) => Some(call.id.to_string()),
            Part::Result(id) | Part::ServerResult(id) => Some(id.to_string()),
            Part::Text(_) | Part::Other => None,
        })
        .collect();
    for (at, result) in duplicates {
        let part = messages.get(at.row).and_then(|row| row.parts.get(at.part));
        let Some(Part::Call(call)) = part else {
            continue;
        };
        let id = unused_id(&call.id, &ids);
        let mut is_renamed = false;
        for place in [Some(at), result].into_iter().flatten() {
            let source = renamed.get(&place.row).map(String::as_str);
            let source = source.or_else(|| sources.get(place.row).copied());
            let source = source.unwrap_or_default();
            let changed = match api {
                Api::Anthropic => anthropic::with_id(source, place.part, &id),
                Api::Chat => chat::with_id(source, place.part, &id),
                Api::Responses => responses::with_id(source, &id),
            };
            // A row in an unknown form is not changed.
            let Some(changed) = changed else { break };
            renamed.insert(place.row, changed);
            is_renamed = true;
        }
        if is_renamed {
            repairs.push(Repair::for_call(RepairKind::DuplicateId, at.row, call));
            ids.insert(id);
        }
    }
    renamed
}

/// The id with the first number that makes it unique.
fn unused_id(id: &str, ids: &BTreeSet<String>) -> String {
    let mut number = 2u32;
    loop {
        let candidate = format!("{id}_{number}");
        if !ids.contains(&candidate) {
            return candidate;
        }
        number += 1;
    }
}
