//! `onward review decide`: the reviewer's decision.
//!
//! A review is identified by its own id or its step, and by the plan if that has only one pending
//! review.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use onward_core::command::Modification;
use onward_core::event::Decision as Core;
use onward_core::step::{ReviewField, ReviewScope};
use onward_engine::Engine;
use onward_engine::step::ReviewDecision;
use serde_json::{Map, Value};

use crate::cli::Context;
use crate::cli::database::Database;
use crate::cli::plan::read_text;
use crate::cli::step::outlook;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::hint::{self, Interface};
use crate::tools::review_fields::answers_of_texts;
use crate::tools::submit_user_decision::Edit;
use crate::wire::review::DecisionOutcome;

/// Decide a pending review
#[derive(Args)]
pub(crate) struct Decide {
    /// Review, step or plan: unique prefix of its id, PLAN/ORDER, or words of the plan's name
    #[arg(value_name = "REVIEW")]
    id: String,
    /// Your decision
    #[arg(value_name = "DECISION")]
    decision: Decision,
    /// Feedback for the agent; required for `modify`
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
    /// Answer to a typed question of the review; repeat it for several values
    #[arg(long = "answer", value_name = "NAME=VALUE")]
    answers: Vec<String>,
    /// JSON file with changes to the steps of a plan that you approve before its start; `-` for
    /// standard input
    ///
    /// A list of objects: `{"stepId", "title", "instructions"}` changes a step, `{"stepId",
    /// "remove": true}` removes it, and an object without `stepId` adds a step.
    #[arg(long, value_name = "FILE")]
    edits: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Decision {
    /// Accept the result, the summary or the new plan, and continue
    Approve,
    /// Fail the step and the plan
    Reject,
    /// Return the step to the agent with your feedback
    Modify,
    /// Skip the step and continue the plan
    Skip,
}

pub(super) async fn run(args: &Decide, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let Database { engine, caller, .. } = &database;
    let open = database.find_review(&args.id).await?;
    let decision = match args.decision {
        Decision::Approve => Core::Approve,
        Decision::Reject => Core::Reject,
        Decision::Modify => Core::Modify,
        Decision::Skip => Core::Skip,
    };
    let feedback = args.feedback.clone();
    let edits = match &args.edits {
        Some(path) => read_edits(path, engine)?,
        None => Vec::new(),
    };
    let review = ReviewDecision {
        review: Some(open.id),
        edits,
        answers: answers(&args.answers, &open.review.options.fields)?,
        ..ReviewDecision::new(open.step, decision, feedback)
    };
    let reviewed = engine.decide_review(caller, review).await?;
    let is_start = open.review.scope == ReviewScope::Start;
    let decided = match args.decision {
        Decision::Approve if is_start => "can be assigned: the plan is approved",
        Decision::Approve => "approved",
        Decision::Reject => "rejected: the plan failed",
        Decision::Modify => "sent back to the agent with your feedback",
        Decision::Skip => "skipped",
    };
    cx.output.note(&format!("step {} {decided}", open.order));
    if !reviewed.plan_status.is_terminal() {
        cx.output.note(&outlook(&database, open.plan).await?);
    }
    if cx.output.json {
        cx.output.print_json(&DecisionOutcome::new(&reviewed))?;
    }
    Ok(Exit::Done)
}

/// The answers to the typed questions.
fn answers(given: &[String], fields: &[ReviewField]) -> Result<Map<String, Value>> {
    let mut pairs = Vec::new();
    for answer in given {
        let pair = answer.split_once('=').ok_or_else(|| {
            let message = format!("invalid answer `{answer}`: must be NAME=VALUE");
            Failure::usage(message, "see the names with `onward review show`")
        })?;
        if fields.iter().all(|field| field.name != pair.0) {
            let message = format!("the review has no field `{}`", pair.0);
            return Err(Failure::usage(
                message,
                "see the names with `onward review show`",
            ));
        }
        pairs.push(pair);
    }
    Ok(answers_of_texts(fields, |name| {
        let of_name = pairs.iter().filter(|(given, _)| *given == name);
        of_name.map(|(_, text)| *text).collect()
    }))
}

/// The changes in a file.
fn read_edits(path: &Path, engine: &Engine) -> Result<Vec<Modification>> {
    let (text, source) = read_text(path)?;
    let edits = serde_json::from_str(&text).map_err(|error| {
        Failure::failed(
            format!("invalid edits in `{source}`: {error}"),
            "write a JSON list as described in `onward review decide --help`",
        )
    })?;
    Edit::modifications(edits, engine).map_err(|error| Failure {
        details: error.details,
        ..Failure::new(
            Exit::Failed,
            error.code,
            error.message,
            hint::render(&error.hint, Interface::CommandLine, None),
        )
    })
}
