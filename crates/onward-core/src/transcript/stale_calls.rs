//! The fourth pass: a call that is past its time is given up, in any row of the model.
//!
//! The clock is the detector's for calls, exact at the boundary; all calls see one `now`. Siblings in the
//! same row are judged each by its own time.

use super::{Repair, Role, Row, What, give_up};
use crate::call::{CallPolicy, is_stale};
use crate::time::Timestamp;

pub(super) fn give_up_all(
    rows: &mut [Row<'_, '_>],
    now: Timestamp,
    policy: CallPolicy,
    repairs: &mut Vec<Repair>,
) {
    for row in rows.iter_mut() {
        if row.message.role == Role::Assistant {
            let why = |times: &_| is_stale(times, now, policy).then_some(What::Stale);
            give_up(row, why, repairs);
        }
    }
}
