//! Results in search: the summary of a step's result or the reason of its failure, with its reviews.
//!
//! A step that ends is marked in its own row, which costs nothing. The next search writes the texts of
//! the marked steps, so a search contains every result that was submitted before it. After thousands of
//! results without a search, the next ones share the work: none is delayed by more than `MAX_DELAY`.

use std::sync::Arc;
use std::time::Duration;

use onward_core::capture::CAPTURED_SUMMARY;
use onward_core::event::ReviewAction;
use onward_core::policy::MAX_ARTIFACT_TITLE;
use onward_core::{Event, Json};
use onward_store::{Contexts, Entry, Results, Tx, UnindexedResult};

use crate::engine::Engine;
use crate::error::Error;

/// Number of steps per transaction.
const BATCH: u32 = 100;
/// Maximum number of review requests and decisions of a step in its text.
const MAX_REVIEWS: u32 = 20;
/// How long a search waits for results to be added to it.
const MAX_DELAY: Duration = Duration::from_secs(2);

impl Engine {
    /// Adds the steps that have ended since the last search, as far as there is time.
    pub(crate) async fn index_results(&self, tenant: &str) -> Result<(), Error> {
        let tenant: Arc<str> = tenant.into();
        let deadline = tokio::time::Instant::now() + MAX_DELAY;
        let turn = self.indexing.of(&tenant);
        let Ok(_turn) = tokio::time::timeout_at(deadline, turn.lock()).await else {
            return Ok(());
        };
        let mut is_new = false;
        while tokio::time::Instant::now() < deadline {
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
    let ended = Results(tx).unindexed(BATCH).await?;
    let (shown, hidden): (Vec<_>, Vec<_>) = ended.into_iter().partition(|result| {
        let is_copy = result.is_captured && result.summary.as_deref() == Some(CAPTURED_SUMMARY);
        !result.is_hidden && !is_copy
    });
    let steps: Vec<_> = shown
        .iter()
        .map(|result| (result.plan, result.step))
        .collect();
    let reviews = Contexts(tx).reviews_of_all(&steps, MAX_REVIEWS).await?;
    for (result, reviews) in shown.iter().zip(&reviews) {
        Results(tx).index(result, &title(result), &text(result, reviews));
    }
    for result in &hidden {
        Results(tx).index(result, "", "");
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
