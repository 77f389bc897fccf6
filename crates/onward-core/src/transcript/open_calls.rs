//! The third and fourth pass: interrupt calls that will not return.
//!
//! A dangling call is a running call in an older row of the model. A later row of the model proves
//! that the conversation continued without the result. A later user row does not prove it. Calls in
//! the last row of the model are kept, because they may still return. Calls that await approval are
//! kept. The outcome of a dangling call is unknown: it may have been executed.
//!
//! A stale call is a timed-out call in any row of the model, by the timeouts of the call detector. All
//! calls are checked against the same `now`, each with its own timeout.

use super::message::{Part, Resolution, Role, Row};
use super::repair::{Repair, RepairKind};
use crate::call::{CallPolicy, CallStatus, CallTimestamp, Cause, is_stale};
use crate::time::Timestamp;

/// The third pass.
pub(super) fn interrupt_dangling(rows: &mut [Row<'_, '_>], repairs: &mut Vec<Repair>) {
    let is_model_row = |row: &Row<'_, '_>| row.message.role == Role::Assistant;
    let Some(last) = rows.iter().rposition(is_model_row) else {
        return;
    };
    for row in rows.iter_mut().take(last).filter(|row| is_model_row(row)) {
        let why = |status| (status == CallStatus::Running).then_some(RepairKind::Dangling);
        interrupt_calls(row, |times| why(times.status), repairs);
    }
}

/// The fourth pass.
pub(super) fn interrupt_stale(
    rows: &mut [Row<'_, '_>],
    now: Timestamp,
    policy: CallPolicy,
    repairs: &mut Vec<Repair>,
) {
    for row in rows.iter_mut() {
        if row.message.role == Role::Assistant {
            let why = |times: &_| is_stale(times, now, policy).then_some(RepairKind::Stale);
            interrupt_calls(row, why, repairs);
        }
    }
}

/// Interrupts the open calls of a row for which `why` returns a reason. Copies the row
/// only then.
fn interrupt_calls(
    row: &mut Row<'_, '_>,
    why: impl Fn(&CallTimestamp) -> Option<RepairKind>,
    repairs: &mut Vec<Repair>,
) {
    for part in 0..row.message.parts.len() {
        let Some(Part::Call(call)) = row.message.parts.get(part) else {
            continue;
        };
        let Resolution::Open(times) = call.resolution else {
            continue;
        };
        let Some(kind) = why(&times) else { continue };
        repairs.push(Repair::for_call(kind, row.index, call));
        let cause = kind.cause().unwrap_or(Cause::OutcomeUnknown);
        if let Some(Part::Call(call)) = row.message.to_mut().parts.get_mut(part) {
            call.resolution = Resolution::Interrupted(cause);
        }
    }
}
