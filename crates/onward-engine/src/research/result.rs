//! Results in search: the summary of a step's result or the reason of its failure, with its reviews.
//!
//! A step that ends is marked in its own row, which costs nothing. The next search writes the texts of
//! all marked steps, so a search contains every result that was submitted before it.

use onward_core::capture::CAPTURED_SUMMARY;
use onward_core::event::ReviewAction;
use onward_core::policy::MAX_ARTIFACT_TITLE;
use onward_core::{Event, Json};
use onward_store::{Contexts, Entry, Results, Tx, UnindexedResult};

use crate::engine::Engine;
use crate::error::Error;

/// Number of steps per transaction.
const BATCH: u32 = 200;
/// Maximum number of review requests and decisions of a step in its text.
const MAX_REVIEWS: u32 = 20;

impl Engine {
    /// Adds the steps that have ended since the last search.
    pub(crate) async fn index_results(&self, tenant: &str) -> Result<(), Error> {
        let tenant = tenant.into();
        let mut is_new = false;
        loop {
            let waiting = self.store.read(&tenant, |tx| {
                Box::pin(async { Ok::<_, Error>(Results(tx).are_waiting().await?) })
            });
            if !waiting.await? {
                break;
            }
            is_new = true;
            let indexed = self.store.write(&tenant, |tx| Box::pin(index_batch(tx)));
            indexed.await?;
        }
        if is_new {
            self.wake_embedder();
        }
        Ok(())
    }
}

async fn index_batch(tx: &mut Tx) -> Result<(), Error> {
    for result in Results(tx).unindexed(BATCH).await? {
        let is_copy = result.is_captured && result.summary.as_deref() == Some(CAPTURED_SUMMARY);
        let mut content = String::new();
        if !result.is_hidden && !is_copy {
            let reviews = Contexts(tx)
                .reviews_of(result.plan, result.step, MAX_REVIEWS)
                .await?;
            content = text(&result, &reviews);
        }
        Results(tx).index(&result, &title(&result), &content);
    }
    Ok(())
}

/// The title of the step, or the beginning of its instructions.
fn title(result: &UnindexedResult) -> String {
    let first_line = || result.instructions.lines().next().unwrap_or_default();
    let title = result.title.as_deref().unwrap_or_else(first_line);
    title.chars().take(MAX_ARTIFACT_TITLE).collect()
}

/// The result, then the reviews in their order. `reviews` are newest first.
fn text(result: &UnindexedResult, reviews: &[Entry]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut add = |part: &str| {
        if !part.trim().is_empty() && !parts.iter().any(|known| known == part) {
            parts.push(part.to_owned());
        }
    };
    add(result.summary.as_deref().unwrap_or_default());
    add(result.failure.as_deref().unwrap_or_default());
    for entry in reviews.iter().rev() {
        let Event::UserReviewed { action, .. } = &entry.event else {
            continue;
        };
        match action {
            ReviewAction::Requested { summary, .. } => add(summary),
            ReviewAction::Decided {
                feedback, answers, ..
            } => {
                add(feedback.as_deref().unwrap_or_default());
                add(&answers.as_ref().map(answer_text).unwrap_or_default());
            }
        }
    }
    parts.join("\n\n")
}

/// The answers, one per line.
fn answer_text(answers: &Json) -> String {
    let Ok(serde_json::Value::Object(answers)) = serde_json::from_str(answers.as_str()) else {
        return answers.as_str().to_owned();
    };
    let lines = answers.iter().map(|(name, answer)| match answer.as_str() {
        Some(text) => format!("{name}: {text}"),
        None => format!("{name}: {answer}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}
