//! The full tables: status × cause for plans and steps, and situation × command. They are checked
//! against the law as it is written down here a second time, and they write `docs/state-machine.md`,
//! which fails the test when it is stale. `ONWARD_BLESS=1` writes it anew.
#![allow(
    clippy::disallowed_methods,
    reason = "a generated document is read and written here"
)]

use std::fmt::Write as _;

use onward_core::command::{ActionSpec, HandleStalls, Modification};
use onward_core::event::Decision;
use onward_core::id::ClaimToken;
use onward_core::plan::PlanCause;
use onward_core::policy::OnStall;
use onward_core::step::StepCause;
use onward_core::{Command, Event, PlanStatus, StepStatus, decide};

use crate::desk::{Desk, MINUTE, abandon, branch, decision, id, modify, spec, sweep};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/state-machine.md");

/// Every legal move of a plan, as the rules say it in words.
const PLAN_LAW: [(PlanStatus, PlanCause, PlanStatus); 13] = {
    use PlanCause as C;
    use PlanStatus as S;
    [
        (S::Planning, C::Begin, S::Executing),
        (S::Planning, C::Abandon, S::Failed),
        (S::Executing, C::AskReview, S::AwaitingReview),
        (S::Executing, C::Stall, S::Stalled),
        (S::Executing, C::Finish, S::Completed),
        (S::Executing, C::BranchFail, S::Failed),
        (S::Executing, C::Abandon, S::Failed),
        (S::AwaitingReview, C::Decide, S::Executing),
        (S::AwaitingReview, C::Reject, S::Failed),
        (S::AwaitingReview, C::BranchFail, S::Failed),
        (S::AwaitingReview, C::Abandon, S::Failed),
        (S::Stalled, C::Resume, S::Executing),
        (S::Stalled, C::Abandon, S::Failed),
    ]
};

/// Every legal move of a step, as the rules say it in words.
const STEP_LAW: [(StepStatus, StepCause, StepStatus); 13] = {
    use StepCause as C;
    use StepStatus as S;
    [
        (S::Pending, C::Claim, S::InProgress),
        (S::Pending, C::PassOver, S::Skipped),
        (S::Pending, C::FailByHand, S::Failed),
        (S::InProgress, C::Complete, S::Completed),
        (S::InProgress, C::AskReview, S::AwaitingInput),
        (S::InProgress, C::FailByHand, S::Failed),
        (S::InProgress, C::FailByPolicy, S::Failed),
        (S::InProgress, C::UseUp, S::Failed),
        (S::InProgress, C::HandBack, S::Pending),
        (S::AwaitingInput, C::Approve, S::Completed),
        (S::AwaitingInput, C::Reject, S::Failed),
        (S::AwaitingInput, C::Revise, S::InProgress),
        (S::AwaitingInput, C::Skip, S::Skipped),
    ]
};

#[test]
fn the_law_of_the_plans_is_as_written() {
    for from in PlanStatus::ALL {
        for cause in PlanCause::ALL {
            let law = PLAN_LAW
                .iter()
                .find(|(f, c, _)| (*f, *c) == (from, cause))
                .map(|(_, _, to)| *to);
            assert_eq!(from.after(cause).ok(), law, "{from} {cause:?}");
            if let Err(illegal) = from.after(cause) {
                assert_eq!((illegal.from, illegal.asked), (from, cause));
                assert!(illegal.to_string().contains(from.as_str()));
            }
        }
        let leads_on = PlanCause::ALL
            .iter()
            .any(|cause| from.after(*cause).is_ok());
        assert_eq!(from.is_terminal(), !leads_on);
    }
}

#[test]
fn the_law_of_the_steps_is_as_written() {
    for from in StepStatus::ALL {
        for cause in StepCause::ALL {
            let law = STEP_LAW
                .iter()
                .find(|(f, c, _)| (*f, *c) == (from, cause))
                .map(|(_, _, to)| *to);
            assert_eq!(from.after(cause).ok(), law, "{from} {cause:?}");
            if let Err(illegal) = from.after(cause) {
                assert_eq!((illegal.from, illegal.asked), (from, cause));
                assert!(illegal.to_string().contains(from.as_str()));
            }
        }
        let leads_on = StepCause::ALL
            .iter()
            .any(|cause| from.after(*cause).is_ok());
        assert_eq!(from.is_terminal(), !leads_on);
    }
}

#[test]
fn a_status_reads_back_what_it_shows() {
    for status in PlanStatus::ALL {
        assert_eq!(status.to_string().parse(), Ok(status));
    }
    for status in StepStatus::ALL {
        assert_eq!(status.to_string().parse(), Ok(status));
    }
    assert!("running".parse::<PlanStatus>().is_err() && "done".parse::<StepStatus>().is_err());
}

/// A plan whose step 1 is in the given status, if there is such a plan. Step 2 is in progress, unless
/// the plan is in planning; step 3 is pending.
fn situation(plan: PlanStatus, step: StepStatus) -> Option<Desk> {
    if plan == PlanStatus::Planning {
        return (step == StepStatus::Pending).then(|| Desk::with(3));
    }
    let mut desk = Desk::with(3).started().started();
    if plan == PlanStatus::Stalled {
        desk.wait(31 * MINUTE);
    }
    match step {
        StepStatus::Pending => drop(desk.does(&modify(Modification::RequeueStep { step: id(1) }))),
        StepStatus::InProgress => {}
        StepStatus::AwaitingInput => drop({
            let command = desk.request_review(1, None);
            desk.does(&command)
        }),
        StepStatus::Completed => drop({
            let command = desk.submit(1, None);
            desk.does(&command)
        }),
        StepStatus::Skipped => drop({
            let command = desk.request_review(1, None);
            desk.does(&command);
            desk.does(&decision(1, Decision::Skip, None))
        }),
        StepStatus::Failed => drop(desk.does(&modify(Modification::FailStep {
            step: id(1),
            reason: None,
        }))),
    }
    match plan {
        PlanStatus::AwaitingReview if step != StepStatus::AwaitingInput => {
            let command = desk.request_review(2, None);
            desk.does(&command);
        }
        PlanStatus::Stalled if step != StepStatus::AwaitingInput => drop(desk.does(&sweep())),
        PlanStatus::Failed => drop(desk.does(&abandon())),
        PlanStatus::Completed if step.is_terminal() => {
            for other in [2, 3] {
                let command = desk.submit(other, None);
                desk.does(&command);
            }
        }
        PlanStatus::Planning
        | PlanStatus::Executing
        | PlanStatus::AwaitingReview
        | PlanStatus::Stalled
        | PlanStatus::Completed => {}
    }
    let reached = desk.status() == plan && desk.plan.step(id(1)).map(|s| s.status()) == Some(step);
    reached.then_some(desk)
}

type Column = (&'static str, fn(&mut Desk) -> Command);

const BY_AGENTS: [Column; 6] = [
    ("`get_next_step`", |desk| desk.start_next(None, false)),
    ("`submit_step_result`", |desk| {
        desk.submit_result(1, None, &crate::desk::result("another result"))
    }),
    ("… with a superseded token", |desk| {
        desk.submit(1, Some(&ClaimToken::new("superseded")))
    }),
    ("`report_step_progress`", |desk| desk.report(1, None)),
    ("… with the token that was handed back", |desk| {
        let handed_back = desk
            .plan
            .step(id(1))
            .and_then(|step| step.superseded.first().cloned());
        desk.report(1, handed_back.as_ref())
    }),
    ("`request_user_review`", |desk| desk.request_review(1, None)),
];

const BY_PEOPLE: [Column; 6] = [
    ("`approve`", |_| decision(1, Decision::Approve, None)),
    ("`reject`", |_| decision(1, Decision::Reject, None)),
    ("`modify`", |_| {
        decision(1, Decision::Modify, Some("shorter"))
    }),
    ("`skip`", |_| decision(1, Decision::Skip, None)),
    ("resume", |_| Command::ResumePlan),
    ("abandon", |_| abandon()),
];

const OF_THE_LIST: [Column; 7] = [
    ("`add_steps`", |_| {
        modify(Modification::AddSteps {
            steps: vec![spec(9)],
            insert_after: Some(1),
        })
    }),
    ("`remove_step`", |_| {
        modify(Modification::RemoveStep { step: id(1) })
    }),
    ("`reorder_steps`", |_| {
        modify(Modification::ReorderSteps {
            steps: [3, 2, 1].map(id).to_vec(),
        })
    }),
    ("`update_step_instructions`", |_| {
        let instructions = "anew".to_owned();
        modify(Modification::UpdateInstructions {
            step: id(1),
            instructions,
        })
    }),
    ("`fail_step`", |_| {
        modify(Modification::FailStep {
            step: id(1),
            reason: None,
        })
    }),
    ("`requeue_step`", |_| {
        modify(Modification::RequeueStep { step: id(1) })
    }),
    ("`add_branch`", |_| {
        modify(Modification::AddBranch {
            branch: branch(1, 1, "true", ActionSpec::Continue),
        })
    }),
];

/// The sweep comes long after every threshold.
fn swept(desk: &mut Desk, policy: OnStall) -> Command {
    desk.wait(31 * MINUTE);
    Command::HandleStalls(HandleStalls {
        policy: Some(policy),
        threshold: None,
    })
}

const AFTER_THE_THRESHOLD: [Column; 5] = [
    ("`get_next_step` with `includeStalled`", |desk| {
        desk.wait(31 * MINUTE);
        desk.start_next(None, true)
    }),
    ("sweep: `mark`", |desk| swept(desk, OnStall::Mark)),
    ("sweep: `requeue`", |desk| swept(desk, OnStall::Requeue)),
    ("sweep: `fail`", |desk| swept(desk, OnStall::Fail)),
    ("sweep: `ignore`", |desk| swept(desk, OnStall::Ignore)),
];

fn cell(desk: &mut Desk, command: &Command) -> String {
    match decide(&desk.plan, command, desk.now) {
        Ok(events) if events.is_empty() => "·".to_owned(),
        Ok(events) => events
            .iter()
            .map(Event::name)
            .collect::<Vec<_>>()
            .join(", "),
        Err(refusal) => format!("*{}*", refusal.code()),
    }
}

fn matrix(columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut table = format!("| plan | step | {} |\n|---|---|", names.join(" | "));
    table.push_str(&"---|".repeat(columns.len()));
    table.push('\n');
    for plan in PlanStatus::ALL {
        for step in StepStatus::ALL {
            let Some(mut desk) = situation(plan, step) else {
                continue;
            };
            let cells: Vec<String> = columns
                .iter()
                .map(|(_, command)| {
                    let command = command(&mut desk);
                    cell(&mut desk, &command)
                })
                .collect();
            writeln!(table, "| {plan} | {step} | {} |", cells.join(" | ")).unwrap();
        }
    }
    table
}

fn law<S: Copy, C: Copy>(
    statuses: &[S],
    causes: &[C],
    status: fn(S) -> &'static str,
    cause: fn(C) -> &'static str,
    after: fn(S, C) -> Option<S>,
) -> String {
    let mut diagram = "```mermaid\nstateDiagram-v2\n    direction LR\n".to_owned();
    let names: Vec<&str> = statuses.iter().map(|s| status(*s)).collect();
    let mut table = format!(
        "| | {} |\n|---|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    if let Some(first) = names.first() {
        writeln!(diagram, "    [*] --> {first}").unwrap();
    }
    for c in causes {
        let cells: Vec<&str> = statuses
            .iter()
            .map(|s| after(*s, *c).map_or("", status))
            .collect();
        writeln!(table, "| {} | {} |", cause(*c), cells.join(" | ")).unwrap();
        for s in statuses {
            if let Some(to) = after(*s, *c) {
                let label = cause(*c).replace('`', "");
                writeln!(diagram, "    {} --> {}: {label}", status(*s), status(to)).unwrap();
            }
        }
    }
    for s in statuses {
        if causes.iter().all(|c| after(*s, *c).is_none()) {
            writeln!(diagram, "    {} --> [*]", status(*s)).unwrap();
        }
    }
    format!("{diagram}```\n\n{table}")
}

fn document() -> String {
    let plans = law(
        &PlanStatus::ALL,
        &PlanCause::ALL,
        PlanStatus::as_str,
        PlanCause::as_str,
        |s, c| s.after(c).ok(),
    );
    let steps = law(
        &StepStatus::ALL,
        &StepCause::ALL,
        StepStatus::as_str,
        StepCause::as_str,
        |s, c| s.after(c).ok(),
    );
    format!(
        "# The state machine\n\n\
         Generated from the code by `crates/onward-core/tests/rules/state_machine.rs`; \
         `ONWARD_BLESS=1 cargo test -p onward-core --test rules` writes it anew.\n\n\
         ## Plans\n\n{plans}\n\
         An empty cell is a refusal that names the status and what was asked. \
         `completed` and `failed` are terminal.\n\n\
         ## Steps\n\n{steps}\n\
         `completed`, `skipped` and `failed` are terminal.\n\n\
         ## Commands\n\n\
         What each command leads to, by where the plan stands and where the step stands that it is \
         about: the events, in their order; or, in italics, the code of the refusal. A dot is an \
         accepted command that changes nothing. The plan has three steps: the step in question is the \
         first, the second is in progress (or awaits the review, where the plan does and the first \
         does not), the third is pending.\n\n\
         ### By agents\n\n{}\n\
         ### By people\n\n{}\n\
         ### Modification\n\n{}\n\
         ### After the threshold\n\n\
         What happens when every step in progress is past its threshold: an agent asks for stalled \
         steps, too; or the sweep acts, by which policy.\n\n{}",
        matrix(&BY_AGENTS),
        matrix(&BY_PEOPLE),
        matrix(&OF_THE_LIST),
        matrix(&AFTER_THE_THRESHOLD),
    )
}

#[test]
fn the_document_of_the_state_machine_is_up_to_date() {
    let document = document();
    if std::env::var_os("ONWARD_BLESS").is_some() {
        std::fs::write(DOCUMENT, &document).unwrap();
    }
    let written = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
    assert!(
        written == document,
        "docs/state-machine.md is stale: run the test with ONWARD_BLESS=1, and read the difference"
    );
}
