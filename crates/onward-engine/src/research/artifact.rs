//! Stores artifacts and plan outputs (in versions). Both are searchable when the transaction
//! commits: the full-text index is written with them.
//!
//! Neither changes a plan. An artifact stored for a step counts as activity on that step. An output
//! is deleted with its plan; an artifact is not.

use onward_core::command::ReportProgress;
use onward_core::decide::With;
use onward_core::event::ProgressSource;
use onward_core::id::{ArtifactId, ClaimToken, OutputId, SessionId};
use onward_core::next_check::Due;
use onward_core::policy::{MAX_ARTIFACT_TITLE, MAX_CONTENT_BYTES, MAX_METADATA_BYTES, MAX_URL};
use onward_core::refusal::{Issue, Refusal};
use onward_core::role::Permission;
use onward_core::{Command, PlanId, StepId};
use onward_store::{Artifact, Artifacts, Cached, Facts, Output, Outputs, Tx};
use serde_json::{Map, Value};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::{CommandContext, CommandOutcome, Target, run};
use crate::sanitize;

/// Default media type of an output.
pub const DEFAULT_MEDIA_TYPE: &str = "text/markdown";
/// Maximum length of a media type, in characters.
const MAX_MEDIA_TYPE: usize = 200;

/// A new artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct NewArtifact {
    /// The title.
    pub title: String,
    /// The complete content.
    pub content: String,
    /// One of [`Artifact::KINDS`]; the default is `note`.
    pub kind: Option<String>,
    /// The plan it belongs to.
    pub plan: Option<PlanId>,
    /// The step it belongs to.
    pub step: Option<StepId>,
    /// The source's URL.
    pub source_url: Option<String>,
    /// Additional metadata.
    pub metadata: Map<String, Value>,
    /// The claim token of the step.
    pub token: Option<ClaimToken>,
    /// The storing session.
    pub session: Option<SessionId>,
}

/// A stored artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredArtifact {
    /// The artifact's id.
    pub id: ArtifactId,
    /// The stored title.
    pub title: String,
    /// Number of searchable chunks.
    pub chunks: usize,
}

/// A new plan output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOutput {
    /// The plan.
    pub plan: PlanId,
    /// The title.
    pub title: String,
    /// The complete content.
    pub content: String,
    /// The media type; the default is [`DEFAULT_MEDIA_TYPE`].
    pub media_type: Option<String>,
}

/// A stored plan output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOutput {
    /// The output's id.
    pub id: OutputId,
    /// Its plan.
    pub plan: PlanId,
    /// The version number of this title.
    pub version: u32,
}

impl Engine {
    /// Stores an artifact.
    pub async fn store_research(
        &self,
        caller: &Caller,
        mut draft: NewArtifact,
    ) -> Result<StoredArtifact, Error> {
        caller.allow(Permission::Work)?;
        sanitize_and_validate(&mut draft)?;
        let ctx = self.command_context(caller, draft.session.as_ref());
        let id = ArtifactId::new(self.ids.ordered_id(ctx.now));
        let stored = self.store.write(&caller.tenant, move |tx| {
            let (draft, ctx) = (draft.clone(), ctx.clone());
            Box::pin(async move { insert(tx, id, draft, &ctx).await })
        });
        let (stored, due) = stored.await?;
        self.sweep_waker.wake_by(due);
        self.wake_embedder();
        Ok(stored)
    }

    /// Stores a plan output, as the first or next version of its title.
    pub async fn store_output(
        &self,
        caller: &Caller,
        deliverable: NewOutput,
    ) -> Result<StoredOutput, Error> {
        caller.allow(Permission::Work)?;
        let NewOutput {
            plan,
            mut title,
            mut content,
            media_type,
        } = deliverable;
        let mut media_type = media_type.unwrap_or_else(|| DEFAULT_MEDIA_TYPE.to_owned());
        for text in [&mut title, &mut content, &mut media_type] {
            sanitize::text(text);
        }
        let mut issues = check(&title, &content);
        check_length(&mut issues, "mediaType", &media_type, MAX_MEDIA_TYPE);
        reject_if_any(issues)?;
        let now = self.now();
        let output = Output {
            id: OutputId::new(self.ids.ordered_id(now)),
            plan,
            title,
            version: 0,
            media_type,
            content,
            actor: caller.actor(),
            created_at: now,
        };
        let delivered = self.store.write(&caller.tenant, move |tx| {
            let mut output = output.clone();
            Box::pin(async move {
                // Locks the plan, so that it is not deleted and the version number stays free until
                // the commit.
                let found = Facts(tx).plan(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let last = Outputs(tx).last_version(plan, &output.title).await?;
                output.version = last.saturating_add(1);
                Outputs(tx).add_output(&output);
                Ok::<StoredOutput, Error>(StoredOutput {
                    id: output.id,
                    plan,
                    version: output.version,
                })
            })
        });
        let delivered = delivered.await?;
        self.wake_embedder();
        Ok(delivered)
    }
}

/// Stores an artifact and records it as activity on its step.
async fn insert(
    tx: &mut Tx,
    id: ArtifactId,
    draft: NewArtifact,
    ctx: &CommandContext,
) -> Result<(StoredArtifact, Due), Error> {
    let (plan, due) = resolve_plan(tx, &draft, ctx).await?;
    let artifact = Artifact {
        id,
        plan,
        step: draft.step,
        kind: draft.kind.unwrap_or_else(|| "note".to_owned()),
        title: draft.title,
        content: draft.content,
        source_url: draft.source_url,
        metadata: Value::Object(draft.metadata),
        created_at: ctx.now,
    };
    let chunks = Artifacts(tx).keep(&artifact);
    let title = artifact.title;
    Ok((StoredArtifact { id, title, chunks }, due))
}

/// The plan that an artifact belongs to, locked until the commit.
async fn resolve_plan(
    tx: &mut Tx,
    draft: &NewArtifact,
    ctx: &CommandContext,
) -> Result<(Option<PlanId>, Due), Error> {
    let Some(step) = draft.step else {
        if let Some(plan) = draft.plan {
            let found = Facts(tx).plan(plan).await?;
            found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
        }
        return Ok((draft.plan, Due::Unchanged));
    };
    let step_not_found = || Error::StepNotFound {
        step: step.to_string(),
        kept: None,
    };
    let facts = Cached(Facts(tx))
        .step(step, With::Head)
        .await?
        .ok_or_else(step_not_found)?;
    let plan = facts.head.id;
    if draft.plan.is_some_and(|requested| requested != plan) {
        return Err(Error::invalid("stepId", "is a step of another plan"));
    }
    let activity = Command::from(ReportProgress {
        step,
        source: ProgressSource::Written,
        note: None,
        percent: None,
        token: draft.token.clone(),
        session: draft.session.clone(),
    });
    match run(tx, Target::Step(step), &activity, ctx, None).await? {
        CommandOutcome::Applied(done) => Ok((Some(plan), done.due)),
        // Not expected, and the artifact is worth storing regardless.
        CommandOutcome::Rejected { .. } => Ok((Some(plan), Due::Unchanged)),
        CommandOutcome::NotFound => Err(step_not_found()),
    }
}

/// Sanitizes and validates a new artifact.
fn sanitize_and_validate(draft: &mut NewArtifact) -> Result<(), Refusal> {
    sanitize::text(&mut draft.title);
    sanitize::text(&mut draft.content);
    sanitize::optional_text(&mut draft.source_url);
    sanitize::metadata(&mut draft.metadata)?;
    draft.session = sanitize::session(draft.session.take());
    let url = draft.source_url.take();
    draft.source_url = url.filter(|url| !url.trim().is_empty());
    let mut issues = check(&draft.title, &draft.content);
    if let Some(kind) = &draft.kind
        && !Artifact::KINDS.contains(&kind.as_str())
    {
        let kinds = Artifact::KINDS.map(|kind| format!("`{kind}`")).join(", ");
        issue(
            &mut issues,
            "artifactType",
            format!("must be one of {kinds}"),
        );
    }
    if let Some(url) = &draft.source_url {
        check_length(&mut issues, "sourceUrl", url, MAX_URL);
    }
    let bytes = serde_json::to_string(&draft.metadata).map_or(0, |json| json.len());
    if bytes > MAX_METADATA_BYTES {
        let message =
            format!("has {bytes} bytes as JSON, at most {MAX_METADATA_BYTES} are allowed");
        issue(&mut issues, "metadata", message);
    }
    reject_if_any(issues)
}

/// Validates a title and content.
pub(crate) fn check(title: &str, content: &str) -> Vec<Issue> {
    let mut issues = Vec::new();
    check_length(&mut issues, "title", title, MAX_ARTIFACT_TITLE);
    if content.is_empty() {
        issue(&mut issues, "content", "must not be empty".to_owned());
    }
    let bytes = content.len();
    if bytes > MAX_CONTENT_BYTES {
        let message = format!("has {bytes} bytes, at most {MAX_CONTENT_BYTES} are allowed");
        issue(&mut issues, "content", message);
    }
    issues
}

fn check_length(issues: &mut Vec<Issue>, path: &str, text: &str, max_chars: usize) {
    let characters = text.chars().count();
    if text.trim().is_empty() {
        issue(issues, path, "must not be empty".to_owned());
    } else if characters > max_chars {
        let message = format!("has {characters} characters, at most {max_chars} are allowed");
        issue(issues, path, message);
    }
}

fn issue(issues: &mut Vec<Issue>, path: &str, message: String) {
    let path = path.to_owned();
    issues.push(Issue { path, message });
}

fn reject_if_any(issues: Vec<Issue>) -> Result<(), Refusal> {
    if issues.is_empty() {
        Ok(())
    } else {
        Err(Refusal::InvalidInput(issues))
    }
}
