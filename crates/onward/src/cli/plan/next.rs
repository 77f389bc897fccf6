//! `onward plan next`: the next step. With `--claim` it assigns the step, like the tool
//! `get_next_step`, for scripts that act as the agent.

use std::fmt::Write;

use clap::Args;
use onward_core::id::SessionId;
use onward_core::policy::MAX_SESSION_ID;
use onward_engine::next_step::NextStep as NextResult;
use onward_engine::peek::Peek;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::hint::Interface;
use crate::output::{budget, format};
use crate::wire::next::NextStep;
use crate::wire::review::ReviewLinks;

/// Show the next step of a plan without claiming it
#[derive(Args)]
pub(crate) struct Next {
    /// Plan: id, unique prefix of the id, or words of its name
    #[arg(value_name = "PLAN")]
    id: String,
    /// Claim the step; the caller is the agent and must submit the result
    #[arg(long)]
    claim: bool,
    /// Session that claims the step
    #[arg(long, value_name = "SESSION", requires = "claim", value_parser = session_id)]
    session: Option<String>,
    /// Take over a stuck step before any pending step
    #[arg(long, requires = "claim")]
    include_stalled: bool,
}

fn session_id(text: &str) -> std::result::Result<String, String> {
    match text.chars().count() {
        0 => Err("must not be empty".to_owned()),
        length if length > MAX_SESSION_ID => Err(format!(
            "must have at most {MAX_SESSION_ID} characters, has {length}"
        )),
        _ => Ok(text.to_owned()),
    }
}

pub(super) async fn run(args: &Next, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let Database { engine, caller, .. } = &database;
    let plan = database.find_plan(&args.id).await?;
    let next = if args.claim {
        let session = args.session.as_deref().map(SessionId::new);
        let claimed = engine
            .next_step(caller, plan, session, args.include_stalled)
            .await?;
        Peek::None(claimed)
    } else {
        engine.peek(caller, plan).await?
    };
    if cx.output.json {
        let json = match &next {
            Peek::Step(step) => NextStep::ready(plan, step),
            Peek::None(next) => NextStep::new(Some(plan), next)
                .for_caller(Interface::CommandLine, &ReviewLinks::None),
        };
        cx.output.print_json(&json)?;
        return Ok(Exit::Done);
    }
    let text = match &next {
        Peek::Step(step) => {
            let title = step.spec.title.as_deref();
            let head = heading("next", step.order, step.spec.step_type.as_str(), title);
            format!(
                "{head}\n{}",
                format::indented(&step.spec.instructions, "  ")
            )
        }
        Peek::None(next) => describe(next),
    };
    cx.output.print(&text)?;
    Ok(Exit::Done)
}

fn heading(label: &str, order: u32, kind: &str, title: Option<&str>) -> String {
    match title {
        Some(title) => format!(
            "{label}: step {order} ({kind}), {}",
            format::sanitize_line(title)
        ),
        None => format!("{label}: step {order} ({kind})"),
    }
}

fn describe(next: &NextResult) -> String {
    match next {
        NextResult::Started(step) => {
            let title = step.title.as_deref();
            let head = heading("started", step.order, step.step_type.as_str(), title);
            let mut text = format!("{head}\n");
            let _ = writeln!(text, "  step     {}", step.step);
            let _ = writeln!(text, "  attempt  {}", step.attempt);
            let _ = writeln!(text, "  claim    {}", step.token.as_str());
            let limit = format::duration(step.stall_threshold);
            let _ = writeln!(text, "  limit    {limit} without an update");
            format!("{text}\n{}", format::indented(&step.instructions, "  "))
        }
        NextResult::Complete(_) => "no next step: the plan is completed\n".to_owned(),
        NextResult::Failed { reason } => {
            format!(
                "no next step: the plan failed: {}\n",
                format::sanitize_line(&reason.to_string())
            )
        }
        NextResult::AwaitingReview { step, review, .. } => format!(
            "no next step: step {step} is awaiting review\n{}",
            format::indented(&review.summary, "  ")
        ),
        NextResult::BudgetExhausted { exhausted, .. } => format!(
            "no next step: the budget is exhausted: {}\n",
            budget::exhausted_text(exhausted)
        ),
        NextResult::NoPendingSteps {
            in_progress,
            failed,
            blocked,
            working,
            ..
        } => {
            let mut text = format!(
                "no step is ready: {in_progress} in progress, {blocked} blocked, {failed} failed\n"
            );
            for step in working {
                let stuck = if step.stalled { " (stuck)" } else { "" };
                let elapsed = format::elapsed(step.elapsed);
                let _ = writeln!(text, "  step {}: updated {elapsed}{stuck}", step.order);
            }
            text
        }
    }
}
