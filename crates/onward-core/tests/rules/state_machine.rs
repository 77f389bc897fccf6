//! The transition tables of plans and steps, and the outcome of every command in every status.
//!
//! The tests compare the code with a second copy of the tables and with `docs/state-machine.md`,
//! which is generated here. `ONWARD_BLESS=1` rewrites the document.

mod meanings;

use std::fmt::Write as _;

use onward_core::budget::Budget;
use onward_core::command::{
    ActionSpec, HandleStalls, Modification, PlanUpdate, StepRef, StepUpdate,
};
use onward_core::event::Decision;
use onward_core::id::ClaimToken;
use onward_core::plan::PlanCause;
use onward_core::policy::OnStall;
use onward_core::step::StepCause;
use onward_core::{Command, Event, PlanStatus, StepStatus, decide};
use onward_testbed::golden;

use crate::harness::{Harness, MINUTE, abandon, branch, decision, id, modify, spec, sweep};
use meanings::{EVENTS, plan_meaning, step_meaning};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/state-machine.md");

/// All legal plan transitions.
const PLAN_TRANSITIONS: [(PlanStatus, PlanCause, PlanStatus); 20] = {
    use PlanCause as C;
    use PlanStatus as S;
    [
        (S::Planning, C::Begin, S::Executing),
        (S::Planning, C::RequestReview, S::AwaitingReview),
        (S::Planning, C::Abandon, S::Failed),
        (S::Executing, C::RequestReview, S::AwaitingReview),
        (S::Executing, C::RequestStepReview, S::Executing),
        (S::Executing, C::DecideOne, S::Executing),
        (S::Executing, C::Reject, S::Failed),
        (S::Executing, C::Stall, S::Stalled),
        (S::Executing, C::Finish, S::Completed),
        (S::Executing, C::BranchFail, S::Failed),
        (S::Executing, C::Abandon, S::Failed),
        (S::AwaitingReview, C::RequestReview, S::AwaitingReview),
        (S::AwaitingReview, C::RequestStepReview, S::AwaitingReview),
        (S::AwaitingReview, C::Decide, S::Executing),
        (S::AwaitingReview, C::DecideOne, S::AwaitingReview),
        (S::AwaitingReview, C::Reject, S::Failed),
        (S::AwaitingReview, C::BranchFail, S::Failed),
        (S::AwaitingReview, C::Abandon, S::Failed),
        (S::Stalled, C::Resume, S::Executing),
        (S::Stalled, C::Abandon, S::Failed),
    ]
};

/// All legal step transitions.
const STEP_TRANSITIONS: [(StepStatus, StepCause, StepStatus); 16] = {
    use StepCause as C;
    use StepStatus as S;
    [
        (S::Pending, C::Claim, S::InProgress),
        (S::Pending, C::BranchSkip, S::Skipped),
        (S::Pending, C::SkipManually, S::Skipped),
        (S::Pending, C::FailManually, S::Failed),
        (S::Pending, C::RequestApproval, S::AwaitingInput),
        (S::InProgress, C::Complete, S::Completed),
        (S::InProgress, C::RequestReview, S::AwaitingInput),
        (S::InProgress, C::FailManually, S::Failed),
        (S::InProgress, C::FailByPolicy, S::Failed),
        (S::InProgress, C::ExhaustAttempts, S::Failed),
        (S::InProgress, C::Requeue, S::Pending),
        (S::AwaitingInput, C::Approve, S::Completed),
        (S::AwaitingInput, C::ApproveStart, S::Pending),
        (S::AwaitingInput, C::Reject, S::Failed),
        (S::AwaitingInput, C::Revise, S::InProgress),
        (S::AwaitingInput, C::ReviewSkip, S::Skipped),
    ]
};

#[test]
fn plan_transitions_match_the_table() {
    for from in PlanStatus::ALL {
        for cause in PlanCause::ALL {
            let expected = PLAN_TRANSITIONS
                .iter()
                .find(|(f, c, _)| (*f, *c) == (from, cause))
                .map(|(_, _, to)| *to);
            assert_eq!(from.after(cause).ok(), expected, "{from} {cause:?}");
            if let Err(illegal) = from.after(cause) {
                assert_eq!((illegal.from, illegal.cause), (from, cause));
                assert!(illegal.to_string().contains(from.as_str()));
            }
        }
        let has_transition = PlanCause::ALL
            .iter()
            .any(|cause| from.after(*cause).is_ok());
        assert_eq!(from.is_terminal(), !has_transition);
    }
}

#[test]
fn step_transitions_match_the_table() {
    for from in StepStatus::ALL {
        for cause in StepCause::ALL {
            let expected = STEP_TRANSITIONS
                .iter()
                .find(|(f, c, _)| (*f, *c) == (from, cause))
                .map(|(_, _, to)| *to);
            assert_eq!(from.after(cause).ok(), expected, "{from} {cause:?}");
            if let Err(illegal) = from.after(cause) {
                assert_eq!((illegal.from, illegal.cause), (from, cause));
                assert!(illegal.to_string().contains(from.as_str()));
            }
        }
        let has_transition = StepCause::ALL
            .iter()
            .any(|cause| from.after(*cause).is_ok());
        assert_eq!(from.is_terminal(), !has_transition);
    }
}

#[test]
fn statuses_parse_from_their_display_text() {
    for status in PlanStatus::ALL {
        assert_eq!(status.to_string().parse(), Ok(status));
    }
    for status in StepStatus::ALL {
        assert_eq!(status.to_string().parse(), Ok(status));
    }
    assert!("running".parse::<PlanStatus>().is_err() && "done".parse::<StepStatus>().is_err());
}

/// A plan with this status whose step 1 has the given status, if that combination is reachable.
/// Step 2 is in progress unless the plan is in planning; step 3 is pending.
fn scenario(plan: PlanStatus, step: StepStatus) -> Option<Harness> {
    if plan == PlanStatus::Planning {
        return (step == StepStatus::Pending).then(|| Harness::with_steps(3));
    }
    let mut harness = Harness::with_steps(3).started().started();
    if plan == PlanStatus::Stalled {
        harness.advance(31 * MINUTE);
    }
    match step {
        StepStatus::Pending => {
            drop(harness.run(&modify(Modification::RequeueStep { step: id(1) })))
        }
        StepStatus::InProgress => {}
        StepStatus::AwaitingInput => drop({
            let command = if plan == PlanStatus::AwaitingReview {
                harness.request_review(1, None)
            } else {
                harness.request_step_review(1, None)
            };
            harness.run(&command)
        }),
        StepStatus::Completed => drop({
            let command = harness.submit(1, None);
            harness.run(&command)
        }),
        StepStatus::Skipped => drop({
            let command = harness.request_review(1, None);
            harness.run(&command);
            harness.run(&decision(1, Decision::Skip, None))
        }),
        StepStatus::Failed => drop(harness.run(&modify(Modification::FailStep {
            step: id(1),
            reason: None,
        }))),
    }
    match plan {
        PlanStatus::AwaitingReview if step != StepStatus::AwaitingInput => {
            let command = harness.request_review(2, None);
            harness.run(&command);
        }
        PlanStatus::Stalled => drop(harness.run(&sweep())),
        PlanStatus::Failed => drop(harness.run(&abandon())),
        PlanStatus::Completed if step.is_terminal() => {
            for other in [2, 3] {
                let command = harness.submit(other, None);
                harness.run(&command);
            }
        }
        PlanStatus::Planning
        | PlanStatus::Executing
        | PlanStatus::AwaitingReview
        | PlanStatus::Completed => {}
    }
    let reached =
        harness.status() == plan && harness.plan.step(id(1)).map(|s| s.status()) == Some(step);
    reached.then_some(harness)
}

type Column = (&'static str, fn(&mut Harness) -> Command);

const AGENT_COMMANDS: [Column; 6] = [
    ("`get_next_step`", |harness| harness.start_next(None, false)),
    ("`submit_step_result`", |harness| {
        harness.submit_result(1, None, &crate::harness::result("another result"))
    }),
    (
        "`submit_step_result` with a token of another step",
        |harness| harness.submit(1, Some(&ClaimToken::new("another step"))),
    ),
    ("`report_step_progress`", |harness| harness.report(1, None)),
    (
        "`report_step_progress` with the token from before a requeue",
        |harness| {
            let requeued = harness
                .plan
                .step(id(1))
                .and_then(|step| step.superseded.first().cloned());
            harness.report(1, requeued.as_ref())
        },
    ),
    ("`request_user_review`", |harness| {
        harness.request_review(1, None)
    }),
];

const USER_COMMANDS: [Column; 6] = [
    ("`approve`", |_| decision(1, Decision::Approve, None)),
    ("`reject`", |_| decision(1, Decision::Reject, None)),
    ("`modify`", |_| {
        decision(1, Decision::Modify, Some("shorter"))
    }),
    ("`skip`", |_| decision(1, Decision::Skip, None)),
    ("resume", |_| Command::ResumePlan),
    ("abandon", |_| abandon()),
];

const MODIFICATIONS: [Column; 12] = [
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
        let instructions = "new instructions".to_owned();
        modify(Modification::UpdateInstructions {
            step: id(1),
            instructions,
        })
    }),
    ("`set_dependencies`", |_| {
        modify(Modification::UpdateStep {
            step: id(1),
            update: StepUpdate {
                depends_on: Some(vec![StepRef::Order(3)]),
                ..StepUpdate::default()
            },
        })
    }),
    ("`update_plan`", |_| {
        modify(Modification::UpdatePlan {
            update: PlanUpdate {
                priority: Some(9),
                ..PlanUpdate::default()
            },
        })
    }),
    ("`set_budget`", |_| {
        let budget = Some(Budget {
            max_steps: Some(9),
            ..Budget::default()
        });
        modify(Modification::SetBudget {
            budget,
            by_person: false,
        })
    }),
    ("`fail_step`", |_| {
        modify(Modification::FailStep {
            step: id(1),
            reason: None,
        })
    }),
    ("skip", |_| modify(Modification::SkipStep { step: id(1) })),
    ("`requeue_step`", |_| {
        modify(Modification::RequeueStep { step: id(1) })
    }),
    ("`add_branch`", |_| {
        modify(Modification::AddBranch {
            branch: branch(1, 1, "true", ActionSpec::Continue),
        })
    }),
    ("`redo_step`", |_| {
        modify(Modification::RedoStep {
            step: id(1),
            reason: "wrong source".to_owned(),
            cascade: false,
            ids: vec![id(9)],
        })
    }),
];

/// A sweep after the threshold of every step.
fn late_sweep(harness: &mut Harness, policy: OnStall) -> Command {
    harness.advance(31 * MINUTE);
    Command::HandleStalls(HandleStalls {
        policy: Some(policy),
        threshold: None,
    })
}

const STALL_COMMANDS: [Column; 5] = [
    ("`get_next_step` with `includeStalled`", |harness| {
        harness.advance(31 * MINUTE);
        harness.start_next(None, true)
    }),
    ("sweep: `mark`", |harness| {
        late_sweep(harness, OnStall::Mark)
    }),
    ("sweep: `requeue`", |harness| {
        late_sweep(harness, OnStall::Requeue)
    }),
    ("sweep: `fail`", |harness| {
        late_sweep(harness, OnStall::Fail)
    }),
    ("sweep: `ignore`", |harness| {
        late_sweep(harness, OnStall::Ignore)
    }),
];

/// The outcome of one command, as a table cell.
fn cell(harness: &mut Harness, command: &Command) -> String {
    match decide(&harness.plan, command, harness.now) {
        Ok(events) if events.is_empty() => "·".to_owned(),
        Ok(events) => events
            .iter()
            .map(Event::name)
            .collect::<Vec<_>>()
            .join(", "),
        Err(refusal) => format!("*{}*", refusal.code()),
    }
}

/// The outcomes of the commands for every reachable pair of plan status and step status.
fn outcome_table(columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut table = format!("| plan | step 1 | {} |\n|---|---|", names.join(" | "));
    table.push_str(&"---|".repeat(columns.len()));
    table.push('\n');
    for plan in PlanStatus::ALL {
        for step in StepStatus::ALL {
            let Some(mut harness) = scenario(plan, step) else {
                continue;
            };
            let cells: Vec<String> = columns
                .iter()
                .map(|(_, command)| {
                    let command = command(&mut harness);
                    cell(&mut harness, &command)
                })
                .collect();
            writeln!(table, "| {plan} | {step} | {} |", cells.join(" | ")).unwrap();
        }
    }
    table
}

/// A diagram and a table of all transitions.
fn transitions<S: Copy, C: Copy>(
    statuses: &[S],
    causes: &[C],
    status: fn(S) -> &'static str,
    cause: fn(C) -> &'static str,
    after: fn(S, C) -> Option<S>,
) -> String {
    let mut diagram = "```mermaid\nstateDiagram-v2\n    direction LR\n".to_owned();
    let names: Vec<&str> = statuses.iter().map(|s| status(*s)).collect();
    let mut table = format!(
        "| Cause | {} |\n|---|{}\n",
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

fn event_table() -> String {
    let mut table = "| Event | Meaning |\n|---|---|\n".to_owned();
    for (name, meaning) in EVENTS {
        writeln!(table, "| `{name}` | {meaning} |").unwrap();
    }
    table
}

fn status_table<S: Copy>(
    statuses: &[S],
    status: fn(S) -> &'static str,
    meaning: fn(S) -> &'static str,
) -> String {
    let mut table = "| Status | Meaning |\n|---|---|\n".to_owned();
    for s in statuses {
        writeln!(table, "| `{}` | {} |", status(*s), meaning(*s)).unwrap();
    }
    table
}

fn document() -> String {
    let plan_statuses = status_table(&PlanStatus::ALL, PlanStatus::as_str, plan_meaning);
    let step_statuses = status_table(&StepStatus::ALL, StepStatus::as_str, step_meaning);
    let plans = transitions(
        &PlanStatus::ALL,
        &PlanCause::ALL,
        PlanStatus::as_str,
        PlanCause::as_str,
        |s, c| s.after(c).ok(),
    );
    let steps = transitions(
        &StepStatus::ALL,
        &StepCause::ALL,
        StepStatus::as_str,
        StepCause::as_str,
        |s, c| s.after(c).ok(),
    );
    let [agents, users, modifications, stalls] = [
        outcome_table(&AGENT_COMMANDS),
        outcome_table(&USER_COMMANDS),
        outcome_table(&MODIFICATIONS),
        outcome_table(&STALL_COMMANDS),
    ];
    let events = event_table();
    format!(
        "# State machine\n\n\
         The statuses of plans and steps, their transitions, and the outcome of every command in \
         every status.\n\n\
         Generated from the code by `crates/onward-core/tests/rules/state_machine.rs`. Run \
         `ONWARD_BLESS=1 cargo test -p onward-core --test rules` to update it.\n\n\
         ## Plan\n\n{plan_statuses}\n\
         The transition table lists the resulting status for each cause (row) and current status \
         (column). A transition with an empty cell is rejected with `illegal_transition`, or with \
         `plan_is_terminal` if the plan is `completed` or `failed`.\n\n{plans}\n\
         ## Step\n\n{step_statuses}\n\
         Empty cells are rejected with `illegal_transition`.\n\n{steps}\n\
         ## Events\n\n\
         Every change is an event in the audit trail of the plan.\n\n{events}\n\
         ## Commands\n\n\
         Each cell lists the events that the command emits, in order. Italics are the error code \
         of a rejected command. A dot (·) is an accepted command that changes nothing.\n\n\
         A submitted result must meet the gates of its step. With the gate `reviewRequired`, an \
         accepted result emits `user_reviewed` (`review_requested`, scope `step`) instead of \
         `step_completed`.\n\n\
         A plan that is created with `requiresApproval` is `awaiting_review`: a person approves or \
         rejects its start in a review of scope `start`, which its first open step carries. \
         `approve` emits `user_reviewed`, `plan_status_changed`, `step_requeued` (`approved`), and \
         the events of the edits in the same decision. `modify` and `skip` are rejected with \
         `invalid_input`.\n\n\
         While the budget of a plan is exhausted, `get_next_step` assigns no step; the first such \
         request emits `budget_exhausted`. Results, progress and review decisions are accepted. An \
         event that leaves no step in progress is followed by `plan_stalled`. A claim of a selected \
         step and resuming such a plan are rejected with `budget_exhausted`. A higher budget emits \
         `plan_modified` (`set_budget`) and `plan_resumed`. An agent that raises or removes a budget \
         is rejected with `forbidden`.\n\n\
         The plan has three steps, and the commands address step 1. Step 2 is in progress, or \
         awaiting review if the plan is `awaiting_review` and step 1 is not under review. Step 3 \
         is pending. If step 1 is under review, the review has the scope `plan` in an \
         `awaiting_review` plan, and the scope `step` in any other. In a `planning` plan all steps \
         are pending; in a `completed` plan all steps are terminal.\n\n\
         ### Agents\n\n{agents}\n\
         ### Users\n\n\
         Review decisions (`submit_user_decision`), and resuming or abandoning the plan.\n\n{users}\n\
         ### Modifications\n\n\
         The actions of `modify_plan`.\n\n{modifications}\n\
         `update_step_instructions` with a field other than `instructions` has the outcome of \
         `set_dependencies`: only the definition of a pending step can be changed.\n\n\
         `redo_step` does not change the status of the step. The step is superseded by a new pending \
         step directly after it, with the same instructions and the reason. Pending steps and \
         branches that referred to it refer to the new step. With `cascade`, the completed steps \
         that depend on it are superseded too. Superseded steps count neither for the progress nor \
         for the status of the plan.\n\n\
         A plan that has ended cannot be modified. `create_research_plan` with `fromPlanId` and \
         `fromStepOrder` forks it: in the new plan, the completed steps before that step are \
         completed with the same results. Skipped steps before it and superseded steps are not \
         copied. All other steps are pending.\n\n\
         ### Stalled steps\n\n\
         The outcome after every step in progress has exceeded its stall threshold, for an agent \
         that takes over a stalled step and for the sweep with each stall policy.\n\n{stalls}"
    )
}

#[test]
fn every_emitted_event_is_explained() {
    let columns = [
        &AGENT_COMMANDS[..],
        &USER_COMMANDS,
        &MODIFICATIONS,
        &STALL_COMMANDS,
    ];
    for table in columns.map(outcome_table) {
        let cells = table
            .lines()
            .skip(2)
            .flat_map(|row| row.split(" | ").skip(2));
        let names = cells.flat_map(|cell| cell.trim_end_matches(" |").split(", "));
        for name in names.filter(|name| !name.starts_with('*') && *name != "·") {
            assert!(EVENTS.iter().any(|(event, _)| *event == name), "{name}");
        }
    }
}

#[test]
fn the_generated_document_is_up_to_date() {
    let document = document();
    golden::assert_matches(DOCUMENT, &document);
}
