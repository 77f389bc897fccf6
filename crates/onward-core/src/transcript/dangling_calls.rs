//! The third pass: a running call in an older row of the model is given up.
//!
//! A later row of the model proves that the conversation went on without its result; a later row of the
//! user alone proves nothing. The last row of the model is left alone: its calls may still be answered.
//! What became of the call is not known, so that is what is said: it may have been carried out in full.
//! A call that waits for a person waits rightly also here.

use super::{Repair, Role, Row, What, give_up};
use crate::call::CallStatus;

pub(super) fn give_up_all(rows: &mut [Row<'_, '_>], repairs: &mut Vec<Repair>) {
    let speaks = |row: &Row<'_, '_>| row.message.role == Role::Assistant;
    let Some(last) = rows.iter().rposition(speaks) else {
        return;
    };
    for row in rows.iter_mut().take(last).filter(|row| speaks(row)) {
        let why = |status| (status == CallStatus::Running).then_some(What::Dangling);
        give_up(row, |times| why(times.status), repairs);
    }
}
