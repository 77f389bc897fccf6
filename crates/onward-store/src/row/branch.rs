//! Row of a branch.

use onward_core::branch::Branch;
use onward_core::condition::Condition;
use onward_core::id::BranchId;
use onward_core::{PlanId, StepId};

use crate::codec;
use crate::error::Error;
use crate::value::{Cells, Row, Value, params};

/// Reads a row of a branch.
pub(crate) fn branch(row: Row) -> Result<Branch, Error> {
    read(&mut row.cells("branches"))
}

/// Reads a branch and its ordinal among the columns of other tables, if the row contains one.
pub(crate) fn joined(cells: &mut Cells) -> Result<Option<(Branch, u64)>, Error> {
    if !cells.turn_to("branches", "branch_id") {
        return Ok(None);
    }
    Ok(Some((read(cells)?, cells.u64("ordinal")?)))
}

fn read(cells: &mut Cells) -> Result<Branch, Error> {
    let id = BranchId::new(cells.id("branch_id")?);
    let after = StepId::new(cells.id("after_step")?);
    let condition = cells.text("condition")?;
    let condition =
        Condition::parse(&condition).map_err(|why| cells.undecodable("condition", why))?;
    let word = cells.text("action")?;
    let params = cells.text("params")?;
    let action =
        codec::decode_action(&word, &params).map_err(|why| cells.undecodable("params", why))?;
    Ok(Branch {
        id,
        after,
        condition,
        action,
    })
}

/// Parameters of `branch_redirect`.
pub(crate) fn redirected(branch: &Branch) -> Vec<Value> {
    params![branch.id.as_uuid(), &codec::encode_action(&branch.action)]
}

/// Parameters of `branch_insert`.
pub(crate) fn inserted(plan: PlanId, branch: &Branch, ordinal: u64) -> Vec<Value> {
    params![
        branch.id.as_uuid(),
        plan.as_uuid(),
        branch.after.as_uuid(),
        ordinal,
        branch.condition.source(),
        branch.action.as_str(),
        &codec::encode_action(&branch.action),
    ]
}
