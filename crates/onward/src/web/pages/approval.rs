//! The steps of a plan that awaits its approval, as inputs of the review form. Changed inputs become
//! edits in the same decision.

use onward_core::PlanId;
use onward_engine::{Caller, Engine, Error};

use super::Fields;
use crate::tools::submit_user_decision::Edit;

/// Maximum bytes of the texts of a plan that can be edited here. Larger plans are edited with the
/// command line.
const MAX_BYTES: u64 = 256 * 1024;
/// Maximum number of steps that can be edited here.
const MAX_ROWS: usize = 100;
/// The suffix of the inputs of a new step.
const NEW: &str = "new";

/// The inputs of a step.
pub(super) struct StepInputs {
    /// The step's id, or [`NEW`].
    pub(super) id: String,
    /// `None` for a new step.
    pub(super) order: Option<u32>,
    pub(super) title: String,
    pub(super) instructions: String,
    pub(super) is_removed: bool,
}

/// The open steps of a plan and an empty row for a new one. Empty if the plan is too large.
pub(super) async fn load(
    engine: &Engine,
    caller: &Caller,
    plan: PlanId,
) -> Result<Vec<StepInputs>, Error> {
    let whole = match engine.full_plan_within(caller, plan, MAX_BYTES).await {
        Ok(whole) => whole.plan,
        Err(Error::Conflict { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let open = whole
        .steps
        .iter()
        .filter(|step| !step.status().is_terminal());
    let mut rows: Vec<StepInputs> = open
        .map(|step| StepInputs {
            id: step.id().to_string(),
            order: Some(step.order),
            title: step.spec.title.clone().unwrap_or_default(),
            instructions: step.spec.instructions.clone(),
            is_removed: false,
        })
        .collect();
    if rows.len() > MAX_ROWS {
        return Ok(Vec::new());
    }
    rows.push(StepInputs {
        id: NEW.to_owned(),
        order: None,
        title: String::new(),
        instructions: String::new(),
        is_removed: false,
    });
    Ok(rows)
}

/// Text of an input. Browsers send CRLF line breaks.
fn text(fields: &Fields, name: &str, id: &str) -> Option<String> {
    let found = fields
        .0
        .iter()
        .find(|(field, _)| *field == format!("{name}-{id}"));
    found.map(|(_, text)| text.replace("\r\n", "\n").trim().to_owned())
}

/// Sets the entered values, for a form that is displayed again.
pub(super) fn restore(rows: &mut [StepInputs], fields: &Fields) {
    for row in rows {
        if let Some(title) = text(fields, "title", &row.id) {
            row.title = title;
        }
        if let Some(instructions) = text(fields, "instructions", &row.id) {
            row.instructions = instructions;
        }
        row.is_removed = text(fields, "remove", &row.id).is_some();
    }
}

/// The changes that the form contains.
pub(super) fn edits(rows: &[StepInputs], fields: &Fields) -> Vec<Edit> {
    rows.iter().filter_map(|row| edit(row, fields)).collect()
}

fn edit(row: &StepInputs, fields: &Fields) -> Option<Edit> {
    let step_id = row.order.map(|_| row.id.clone());
    if step_id.is_some() && text(fields, "remove", &row.id).is_some() {
        return Some(Edit {
            step_id,
            title: None,
            instructions: None,
            remove: Some(true),
        });
    }
    let title = text(fields, "title", &row.id).unwrap_or_default();
    let instructions = text(fields, "instructions", &row.id)?;
    let is_changed = title != row.title.trim() || instructions != row.instructions.trim();
    is_changed.then(|| Edit {
        step_id,
        title: Some(title).filter(|title| !title.is_empty()),
        instructions: Some(instructions),
        remove: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, order: Option<u32>) -> StepInputs {
        StepInputs {
            id: id.to_owned(),
            order,
            title: String::new(),
            instructions: "do it\nwell".to_owned(),
            is_removed: false,
        }
    }

    #[test]
    fn only_changed_steps_become_edits() {
        let rows = [row("a", Some(1)), row("b", Some(2)), row("c", Some(3))];
        let fields = [
            ("title-a", ""),
            ("instructions-a", "do it\r\nwell"),
            ("title-b", "Offers"),
            ("instructions-b", "do it\r\nwell"),
            ("instructions-c", "changed"),
            ("remove-c", "true"),
        ];
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let edits = edits(&rows, &Fields(fields.iter().map(owned).collect()));
        let [renamed, removed] = edits.as_slice() else {
            panic!("{} edits", edits.len())
        };
        assert_eq!(renamed.step_id.as_deref(), Some("b"));
        assert_eq!(renamed.title.as_deref(), Some("Offers"));
        assert_eq!(renamed.instructions.as_deref(), Some("do it\nwell"));
        assert_eq!(
            (removed.step_id.as_deref(), removed.remove),
            (Some("c"), Some(true))
        );
    }

    #[test]
    fn a_new_step_needs_an_input() {
        let mut blank = row(NEW, None);
        blank.instructions = String::new();
        let fields = |text: &str| Fields(vec![("instructions-new".to_owned(), text.to_owned())]);
        assert!(edits(std::slice::from_ref(&blank), &fields(" ")).is_empty());
        let added = edits(std::slice::from_ref(&blank), &fields("more"));
        assert!(matches!(added.as_slice(), [Edit { step_id: None, .. }]));
    }
}
