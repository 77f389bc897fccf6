//! `onward review list`: what waits for a decision, the longest waiting first.

use std::fmt::Write;

use clap::Args;
use serde::Serialize;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::words;
use crate::wire::review::Review;

/// How many are shown.
pub(crate) const SHOWN: u32 = 500;

/// Show what waits for your decision, the longest waiting first
#[derive(Args)]
pub(crate) struct List {}

#[derive(Serialize)]
struct Reviews {
    reviews: Vec<Review>,
}

pub(super) async fn run(cx: &Context) -> Result {
    let Database {
        engine,
        caller,
        now,
    } = Database::open(cx).await?;
    let open = engine.open_reviews(&caller, SHOWN).await?;
    let mut reviews = Vec::new();
    let mut text = String::new();
    for review in &open {
        let name = engine.sheet(&caller, review.plan).await?.brief.name;
        if !text.is_empty() {
            text.push('\n');
        }
        let title = review
            .title
            .as_deref()
            .map_or(String::new(), |title| format!(", {title}"));
        let asked = words::ago(now, review.review.requested_at);
        let plan = words::short(review.plan);
        let head = format!(
            "{plan}  {name}: step {}{title}, asked {asked}",
            review.order
        );
        let _ = writeln!(text, "{}", words::line(&head));
        let _ = writeln!(text, "  step {}", review.step);
        text.push_str(&words::indented(&review.review.summary, "  "));
        for question in &review.review.questions {
            text.push_str(&words::indented(&format!("? {question}"), "  "));
        }
        reviews.push(Review::listed(review, &name));
    }
    if cx.output.json {
        cx.output.print_json(&Reviews { reviews })?;
        return Ok(Exit::Done);
    }
    cx.output.print(&text)?;
    match open.first() {
        Some(first) => cx.output.say(&format!(
            "\nanswer with `onward review decide {} approve|reject|modify|skip [--feedback TEXT]`",
            words::short(first.plan)
        )),
        None => cx.output.say("nothing waits for a decision"),
    }
    Ok(Exit::Done)
}
