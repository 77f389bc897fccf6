//! The third pass: interrupts running calls in older rows of the model.
//!
//! A later row of the model proves that the conversation continued without the result; a later user
//! row alone does not. The calls in the last row of the model may still return and are kept. The
//! outcome of an interrupted call is unknown: it may have been executed. Calls that await approval
//! are kept.

use super::{Repair, RepairKind, Role, Row, interrupt_calls};
use crate::call::CallStatus;

pub(super) fn interrupt_all(rows: &mut [Row<'_, '_>], repairs: &mut Vec<Repair>) {
    let is_model_row = |row: &Row<'_, '_>| row.message.role == Role::Assistant;
    let Some(last) = rows.iter().rposition(is_model_row) else {
        return;
    };
    for row in rows.iter_mut().take(last).filter(|row| is_model_row(row)) {
        let why = |status| (status == CallStatus::Running).then_some(RepairKind::Dangling);
        interrupt_calls(row, |times| why(times.status), repairs);
    }
}
