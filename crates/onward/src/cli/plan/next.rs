//! `onward plan next`: what comes next. It looks, and hands nothing out, unless `--claim` says so:
//! then it is what an agent's `get_next_step` is, for scripts that are the agent.

use std::fmt::Write;

use clap::Args;
use onward_core::id::SessionId;
use onward_engine::next::{Next as Answer, Peek};

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::words;
use crate::wire::next::NextStep;

/// Show what comes next, without handing it out
#[derive(Args)]
pub(crate) struct Next {
    /// The plan: its id, or the beginning of it
    #[arg(value_name = "PLAN")]
    id: String,
    /// Hand the step out: you are the agent, and submit its result
    #[arg(long)]
    claim: bool,
    /// Who takes the step on
    #[arg(long, value_name = "SESSION", requires = "claim")]
    session: Option<String>,
    /// Take over a step that has stalled, before any other
    #[arg(long, requires = "claim")]
    include_stalled: bool,
}

pub(super) async fn run(args: &Next, cx: &Context) -> Result {
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let plan = engine.find_plan(&caller, &args.id).await?;
    let answer = if args.claim {
        let session = args.session.as_deref().map(SessionId::new);
        let next = engine
            .next_step(&caller, plan, session, args.include_stalled)
            .await?;
        Peek::None(next)
    } else {
        engine.peek(&caller, plan).await?
    };
    if cx.output.json {
        let json = match &answer {
            Peek::Step(step) => NextStep::ready(plan, step),
            Peek::None(next) => NextStep::of(plan, next),
        };
        cx.output.print_json(&json)?;
        return Ok(Exit::Done);
    }
    let text = match &answer {
        Peek::Step(step) => {
            let title = step.spec.title.as_deref();
            let head = heading("next", step.order, step.spec.step_type.as_str(), title);
            format!("{head}\n{}", words::indented(&step.spec.instructions, "  "))
        }
        Peek::None(next) => told(next),
    };
    cx.output.print(&text)?;
    Ok(Exit::Done)
}

fn heading(word: &str, order: u32, kind: &str, title: Option<&str>) -> String {
    match title {
        Some(title) => format!("{word}: step {order} ({kind}), {}", words::line(title)),
        None => format!("{word}: step {order} ({kind})"),
    }
}

fn told(next: &Answer) -> String {
    match next {
        Answer::Started(step) => {
            let title = step.title.as_deref();
            let head = heading("started", step.order, step.step_type.as_str(), title);
            let mut text = format!("{head}\n");
            let _ = writeln!(text, "  step     {}", step.step);
            let _ = writeln!(text, "  attempt  {}", step.attempt);
            let _ = writeln!(text, "  claim    {}", step.token.as_str());
            let _ = writeln!(
                text,
                "  stalls   after {} of silence",
                words::span(step.stall_threshold)
            );
            format!("{text}\n{}", words::indented(&step.instructions, "  "))
        }
        Answer::Complete(_) => "nothing: the plan is completed\n".to_owned(),
        Answer::Failed { reason } => {
            format!(
                "nothing: the plan failed: {}\n",
                words::line(&reason.to_string())
            )
        }
        Answer::AwaitingReview { step, review } => format!(
            "a decision: step {step} waits for a person\n{}",
            words::indented(&review.summary, "  ")
        ),
        Answer::NoPendingSteps {
            in_progress,
            failed,
            blocked,
            working,
        } => {
            let mut text = format!(
                "nothing at the moment: {in_progress} in progress, {blocked} waiting for them, \
                 {failed} failed\n"
            );
            for step in working {
                let silent = if step.stalled {
                    ", which is too long"
                } else {
                    ""
                };
                let _ = writeln!(
                    text,
                    "  step {}: last sign of life {}{silent}",
                    step.order,
                    words::since(step.elapsed),
                );
            }
            text
        }
    }
}
