//! The fourth pass: interrupts timed-out calls in any row of the model.
//!
//! Uses the timeouts of the call detector. All calls are checked against the same `now`, each with
//! its own timeout.

use super::{Repair, RepairKind, Role, Row, interrupt_calls};
use crate::call::{CallPolicy, is_stale};
use crate::time::Timestamp;

pub(super) fn interrupt_all(
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
