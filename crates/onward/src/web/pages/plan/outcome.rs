//! The message after an action on a plan: what happens next, and what does not.

use onward_core::Timestamp;
use onward_core::attention::Word;
use onward_engine::status::Status;

use super::verdict::steps_text;
use crate::output::format;
use crate::output::time::Zone;
use crate::web::pages::Fields;

/// The orders in the query field `steps`.
pub(in crate::web::pages) fn orders_field(orders: &[u32]) -> String {
    let orders: Vec<String> = orders.iter().map(u32::to_string).collect();
    orders.join(",")
}

/// The message for the query fields `done` and `steps`. Unknown values are ignored.
pub(in crate::web::pages) fn message(
    fields: &Fields,
    status: &Status,
    now: Timestamp,
) -> Option<String> {
    let done = fields.get("done")?;
    let orders = fields.get("steps").unwrap_or_default().split(',');
    let orders: Vec<u32> = orders.filter_map(|order| order.parse().ok()).collect();
    let steps = steps_text(&orders);
    let (subject, them) = match orders.as_slice() {
        [one] => (format!("Step {one} is"), "it"),
        _ => (
            format!("Steps {} are", steps.trim_start_matches("steps ")),
            "them",
        ),
    };
    Some(match done {
        "released" if orders.is_empty() => "No step was stuck; nothing was released.".to_owned(),
        "released" => {
            let next = if matches!(status.attention.word, Word::Working | Word::NeedsYou) {
                format!("The agent that works on this plan can claim {them}.")
            } else {
                "No agent is working on this plan: copy the prompt for an agent.".to_owned()
            };
            format!(
                "{subject} back in the queue. {next} A result of the previous agent is accepted \
                 until another agent claims {them}."
            )
        }
        "step_failed" => {
            let failed = steps.replacen("step", "Step", 1);
            let next = status.pending.first().map(|line| line.order);
            let next = next.filter(|_| status.attention.word != Word::Blocked);
            match next.filter(|_| status.sheet.head.ended_at().is_none()) {
                Some(next) => format!("{failed} failed. The plan continues with step {next}."),
                None => format!("{failed} failed. No step is left to start."),
            }
        }
        "step_skipped" => format!("{} is skipped.", steps.replacen("step", "Step", 1)),
        "step_continues" => {
            let step = steps.replacen("step", "Step", 1);
            format!("{step} no longer waits for failed steps.")
        }
        "redone" => {
            let redone = steps.replacen("step", "Step", 1);
            format!(
                "{redone} is superseded by the step after it, which is in the queue. The old result \
                 is kept."
            )
        }
        "forked" => "This plan is a fork: it has the results of the completed steps, and all \
            other steps are queued."
            .to_owned(),
        "snoozed" => {
            let limit = status.stalled.iter().map(|stalled| stalled.threshold).min();
            let until = limit.and_then(|limit| now.checked_add(limit));
            let held: Vec<u32> = status.stalled.iter().map(|stalled| stalled.order).collect();
            let verb = if held.len() == 1 { "is" } else { "are" };
            let held = format!(
                "{} {verb} still stuck; nothing was released.",
                steps_text(&held)
            );
            match until {
                Some(until) => {
                    let time = Zone::local().time(until, now);
                    format!(
                        "Snoozed until {time}: no alert before then. {}",
                        sentence(&held)
                    )
                }
                None => format!("Snoozed. {}", sentence(&held)),
            }
        }
        "cancelled" => format!(
            "The plan was cancelled. Its {} can no longer be claimed; existing results are kept.",
            format::count(
                status.sheet.head.counts.pending,
                "queued step",
                "queued steps"
            )
        ),
        _ => return None,
    })
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
