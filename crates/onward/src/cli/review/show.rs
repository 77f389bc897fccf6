//! `onward review show`: one review with its questions, and the commands that decide it.

use std::fmt::Write;

use clap::Args;
use onward_core::StepStatus;
use onward_core::event::Decision;
use onward_core::step::{ReviewField, ReviewScope};
use onward_engine::Sheet;
use onward_engine::list::OpenReview;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::evidence::evidence_list;
use crate::output::{Tone, format, markdown};
use crate::wire::review::Review;

/// The width of the column with the commands.
const COMMAND_COLUMNS: usize = 50;

/// Show a pending review, its questions and the possible decisions
#[derive(Args)]
pub(crate) struct Show {
    /// Review, step or plan: unique prefix of its id, PLAN/ORDER, or words of the plan's name
    #[arg(value_name = "REVIEW")]
    id: String,
}

pub(super) async fn run(args: &Show, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let Database { engine, caller, .. } = &database;
    let review = database.find_review(&args.id).await?;
    let sheet = engine.sheet(caller, review.plan).await?;
    let name = sheet.brief.name.clone();
    if cx.output.json {
        cx.output.print_json(&Review::list_entry(&review, &name))?;
        return Ok(Exit::Done);
    }
    let mut id = database.short_plan(review.plan).await?;
    if is_one_of_several(&review, &database).await? {
        id = format!("{id}/{}", review.order);
    }
    let mut text = head(&review, &sheet, &database, cx);
    text.push('\n');
    text.push_str(&markdown::render(&review.review.summary, cx.output, "  "));
    if let Some(result) = &review.review.result {
        if !result.evidence.is_empty() {
            let _ = writeln!(
                text,
                "\n{}",
                cx.output.paint(Some(Tone::Heading), "Evidence")
            );
            let list = evidence_list(&result.evidence);
            text.push_str(&markdown::render(&list, cx.output, "  "));
        }
        if let Some(data) = &result.data {
            let _ = writeln!(
                text,
                "\n{}",
                cx.output.paint(Some(Tone::Heading), "Result data")
            );
            let data = format!("```\n{}\n```", format::pretty_json(&data.parse()));
            text.push_str(&markdown::render(&data, cx.output, "  "));
        }
    }
    for (number, question) in (1..).zip(&review.review.questions) {
        let question = format!("{number}. {question}");
        let _ = write!(text, "\n{}", markdown::render(&question, cx.output, "  "));
    }
    for field in &review.review.options.fields {
        let line = field_line(field);
        let _ = write!(text, "\n{}", markdown::render(&line, cx.output, "  "));
    }
    let following = engine
        .list_steps(caller, review.plan, Some(StepStatus::Pending), 0, 1)
        .await?;
    let scope = review.review.scope;
    let approved = match following.steps.first() {
        _ if scope == ReviewScope::Start => "start the plan".to_owned(),
        Some(next) => format!("continue with step {}", next.order),
        None => "finish the plan".to_owned(),
    };
    let has_fields = !review.review.options.fields.is_empty();
    let answer = if has_fields {
        " --answer NAME=VALUE"
    } else {
        ""
    };
    text.push('\n');
    for decision in [
        Decision::Approve,
        Decision::Modify,
        Decision::Skip,
        Decision::Reject,
    ] {
        if !Decision::on(scope).contains(&decision) {
            continue;
        }
        let (option, effect) = match decision {
            Decision::Approve => (answer, approved.as_str()),
            Decision::Modify => (" --feedback \"…\"", "send back to the agent"),
            Decision::Skip => ("", "skip the step"),
            Decision::Reject => ("", "fail the plan"),
        };
        let command = format!("onward review decide {id} {decision}{option}");
        let effect = cx.output.paint(Some(Tone::Faint), effect);
        let _ = writeln!(text, "  {command:<COMMAND_COLUMNS$}  {effect}");
    }
    cx.output.print(&text)?;
    Ok(Exit::Done)
}

/// A typed question: its name, its type and its values.
fn field_line(field: &ReviewField) -> String {
    let mut line = format!("`{}`", field.name);
    if let Some(title) = &field.title {
        let _ = write!(line, ": {title}");
    }
    if field.kind.has_options() {
        let values = field.options.iter().map(|option| match &option.title {
            Some(title) => format!("`{}` ({title})", option.value),
            None => format!("`{}`", option.value),
        });
        let values: Vec<String> = values.collect();
        let _ = write!(line, " ({}: {})", field.kind, values.join(", "));
    } else {
        let _ = write!(line, " ({})", field.kind);
    }
    if let Some(default) = &field.default {
        let _ = write!(line, ", default `{}`", default.as_str());
    }
    line
}

/// Whether the plan has other pending reviews, so that its id is not enough.
async fn is_one_of_several(review: &OpenReview, database: &Database) -> Result<bool> {
    let Database { engine, caller, .. } = database;
    let awaiting = Some(StepStatus::AwaitingInput);
    let page = engine.list_steps(caller, review.plan, awaiting, 0, 2);
    Ok(page.await?.steps.len() > 1)
}

fn head(review: &OpenReview, sheet: &Sheet, database: &Database, cx: &Context) -> String {
    let title = review.title.as_deref();
    let title = title.map_or(String::new(), |title| format!(", {title}"));
    let name = &sheet.brief.name;
    let title = format::sanitize_line(&format!("{name} · step {}{title}", review.order));
    let width = cx.output.text_width();
    let mut text = String::new();
    for line in format::wrapped(&title, width) {
        let _ = writeln!(text, "{}", cx.output.paint(Some(Tone::Heading), &line));
    }
    let at = review.review.requested_at;
    let asked = cx.output.zone().time(at, database.now);
    let person = format::person(&sheet.owner.person);
    let client = sheet.owner.origin.client.as_deref();
    let client = client.map_or(String::new(), |client| {
        format!(" · {}", format::sanitize_line(client))
    });
    let ago = format::ago(database.now, at);
    let _ = writeln!(text, "asked {asked} ({ago}) by {person}{client}");
    if let Some(assignee) = &review.review.options.assignee {
        let _ = writeln!(text, "assigned to {}", format::sanitize_line(assignee));
    }
    if let Some(deadline) = review.review.options.deadline {
        let due = cx.output.zone().time(deadline.at, database.now);
        let _ = writeln!(text, "due {due}, then {}", deadline.action);
    }
    text
}
