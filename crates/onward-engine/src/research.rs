//! What was found or made during research is kept, and what a plan delivers, in versions. Both can be
//! searched as soon as they are stored: their words are written in the same transaction.
//!
//! Neither changes a plan. An artifact that names a step is a sign that somebody works on it; an
//! output belongs to its plan and goes with it, while an artifact outlives the plan.

use onward_core::command::ReportProgress;
use onward_core::event::Sign;
use onward_core::id::{ArtifactId, ClaimToken, OutputId, SessionId};
use onward_core::policy::{MAX_ARTIFACT_TITLE, MAX_CONTENT_BYTES, MAX_METADATA_BYTES, MAX_URL};
use onward_core::refusal::{Issue, Refusal};
use onward_core::role::Permission;
use onward_core::{Command, PlanId, StepId};
use onward_store::{Artifact, Due, Output, Tx, With};
use serde_json::{Map, Value};

use crate::caller::Caller;
use crate::clean;
use crate::engine::Engine;
use crate::error::Error;
use crate::run::{Moment, Outcome, Target, run};

/// What an output is, where nobody said otherwise.
pub const MEDIA_TYPE: &str = "text/markdown";
/// Characters of a media type.
const MAX_MEDIA_TYPE: usize = 200;

/// Something found or made, as an agent brings it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// A short name.
    pub title: String,
    /// All of it.
    pub content: String,
    /// One of [`Artifact::KINDS`]; a note where nobody said otherwise.
    pub kind: Option<String>,
    /// The plan that it belongs to.
    pub plan: Option<PlanId>,
    /// The step that it belongs to.
    pub step: Option<StepId>,
    /// Where it came from.
    pub source_url: Option<String>,
    /// Whatever else is known.
    pub metadata: Map<String, Value>,
    /// The claim under which it was found.
    pub token: Option<ClaimToken>,
    /// Who found it.
    pub session: Option<SessionId>,
}

/// An artifact that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Which one.
    pub id: ArtifactId,
    /// Its name, as it is stored.
    pub title: String,
    /// How many pieces it is searched in.
    pub chunks: usize,
}

/// What a plan delivers, as an agent brings it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deliverable {
    /// Which plan.
    pub plan: PlanId,
    /// What it is called.
    pub title: String,
    /// All of it.
    pub content: String,
    /// What its content is; [`MEDIA_TYPE`] where nobody said otherwise.
    pub media_type: Option<String>,
}

/// An output that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// Which one.
    pub id: OutputId,
    /// Of which plan.
    pub plan: PlanId,
    /// The how many-th of this title.
    pub version: u32,
}

impl Engine {
    /// Keeps something that was found or made.
    pub async fn store_research(
        &self,
        caller: &Caller,
        mut finding: Finding,
    ) -> Result<Stored, Error> {
        caller.allow(Permission::Work)?;
        tidy(&mut finding)?;
        let moment = self.moment(caller, finding.session.as_ref());
        let id = ArtifactId::new(self.fresh.timely_id(moment.now));
        let stored = self.store.write(&caller.tenant, move |tx| {
            let (finding, moment) = (finding.clone(), moment.clone());
            Box::pin(async move { keep(tx, id, finding, &moment).await })
        });
        let (stored, due) = stored.await?;
        self.alarm.ring(due);
        self.ring_for_meaning();
        Ok(stored)
    }

    /// Keeps what a plan delivers: the first version of its title, or the next.
    pub async fn store_output(
        &self,
        caller: &Caller,
        deliverable: Deliverable,
    ) -> Result<Delivered, Error> {
        caller.allow(Permission::Work)?;
        let Deliverable {
            plan,
            mut title,
            mut content,
            media_type,
        } = deliverable;
        let mut media_type = media_type.unwrap_or_else(|| MEDIA_TYPE.to_owned());
        for text in [&mut title, &mut content, &mut media_type] {
            clean::text(text);
        }
        let mut issues = check(&title, &content);
        check_length(&mut issues, "mediaType", &media_type, MAX_MEDIA_TYPE);
        refuse(issues)?;
        let now = self.now();
        let output = Output {
            id: OutputId::new(self.fresh.timely_id(now)),
            plan,
            title,
            version: 0,
            media_type,
            content,
            actor: caller.signature(),
            created_at: now,
        };
        let delivered = self.store.write(&caller.tenant, move |tx| {
            let mut output = output.clone();
            Box::pin(async move {
                // Held until the commit: nobody deletes it meanwhile, or counts to the same version.
                let found = tx.plan(plan).await?;
                found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
                let last = tx.last_version(plan, &output.title).await?;
                output.version = last.saturating_add(1);
                tx.add_output(&output);
                Ok::<Delivered, Error>(Delivered {
                    id: output.id,
                    plan,
                    version: output.version,
                })
            })
        });
        let delivered = delivered.await?;
        self.ring_for_meaning();
        Ok(delivered)
    }
}

/// Keeps an artifact, with the sign of life that it is.
async fn keep(
    tx: &mut Tx,
    id: ArtifactId,
    finding: Finding,
    moment: &Moment,
) -> Result<(Stored, Due), Error> {
    let (plan, due) = belongs(tx, &finding, moment).await?;
    let artifact = Artifact {
        id,
        plan,
        step: finding.step,
        kind: finding.kind.unwrap_or_else(|| "note".to_owned()),
        title: finding.title,
        content: finding.content,
        source_url: finding.source_url,
        metadata: Value::Object(finding.metadata),
        created_at: moment.now,
    };
    let chunks = tx.keep(&artifact);
    let title = artifact.title;
    Ok((Stored { id, title, chunks }, due))
}

/// The plan that a finding belongs to, held until the commit.
async fn belongs(
    tx: &mut Tx,
    finding: &Finding,
    moment: &Moment,
) -> Result<(Option<PlanId>, Due), Error> {
    let Some(step) = finding.step else {
        if let Some(plan) = finding.plan {
            let found = tx.plan(plan).await?;
            found.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
        }
        return Ok((finding.plan, Due::Unchanged));
    };
    let unknown = || Error::StepNotFound {
        step: step.to_string(),
        kept: None,
    };
    let facts = tx.step(step, With::Head).await?.ok_or_else(unknown)?;
    let plan = facts.head.id;
    if finding.plan.is_some_and(|named| named != plan) {
        return Err(Error::invalid("stepId", "is a step of another plan"));
    }
    let sign = Command::from(ReportProgress {
        step,
        sign: Sign::Written,
        note: None,
        percent: None,
        token: finding.token.clone(),
        session: finding.session.clone(),
    });
    match run(tx, Target::Step(step), &sign, moment, None).await? {
        Outcome::Done(done) => Ok((Some(plan), done.due)),
        // Such a sign is never refused; and what was found is worth keeping all the same.
        Outcome::Refused { .. } => Ok((Some(plan), Due::Unchanged)),
        Outcome::NotFound => Err(unknown()),
    }
}

/// The texts as they are stored, if they fit.
fn tidy(finding: &mut Finding) -> Result<(), Refusal> {
    clean::text(&mut finding.title);
    clean::text(&mut finding.content);
    clean::maybe(&mut finding.source_url);
    clean::metadata(&mut finding.metadata)?;
    finding.session = clean::session(finding.session.take());
    finding.token = clean::token(finding.token.take());
    let url = finding.source_url.take();
    finding.source_url = url.filter(|url| !url.trim().is_empty());
    let mut issues = check(&finding.title, &finding.content);
    if let Some(kind) = &finding.kind
        && !Artifact::KINDS.contains(&kind.as_str())
    {
        let kinds = Artifact::KINDS.map(|kind| format!("`{kind}`")).join(", ");
        issue(
            &mut issues,
            "artifactType",
            format!("must be one of {kinds}"),
        );
    }
    if let Some(url) = &finding.source_url {
        check_length(&mut issues, "sourceUrl", url, MAX_URL);
    }
    let bytes = serde_json::to_string(&finding.metadata).map_or(0, |json| json.len());
    if bytes > MAX_METADATA_BYTES {
        let message =
            format!("has {bytes} bytes as JSON, at most {MAX_METADATA_BYTES} are allowed");
        issue(&mut issues, "metadata", message);
    }
    refuse(issues)
}

/// What is wrong with a title and a content.
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

fn check_length(issues: &mut Vec<Issue>, path: &str, text: &str, most: usize) {
    let characters = text.chars().count();
    if text.trim().is_empty() {
        issue(issues, path, "must not be empty".to_owned());
    } else if characters > most {
        let message = format!("has {characters} characters, at most {most} are allowed");
        issue(issues, path, message);
    }
}

fn issue(issues: &mut Vec<Issue>, path: &str, message: String) {
    let path = path.to_owned();
    issues.push(Issue { path, message });
}

fn refuse(issues: Vec<Issue>) -> Result<(), Refusal> {
    match issues.is_empty() {
        true => Ok(()),
        false => Err(Refusal::InvalidInput(issues)),
    }
}
