//! `/artifacts/{id}` and `/outputs/{id}`: one stored text. Markdown is rendered; `?as=written`
//! displays the source. An output has links to its other versions.

use askama::Template;
use axum::extract::Path;
use onward_core::PlanId;
use onward_engine::{Error, ObjectKind, Output};

use super::format::{RelativeTime, ShortId, multiline, one_line};
use super::layout::{Layout, Section, render};
use super::markdown_html::MarkdownHtml;
use super::{PageError, PageResult, Visit};
use crate::output::format;

const MAX_CHARS: usize = 200_000;
/// Maximum number of versions with a link.
const MAX_VERSIONS: u32 = 50;

#[derive(Template)]
#[template(path = "text.html")]
struct Text {
    layout: Layout,
    title: String,
    kind: String,
    id: ShortId,
    at: RelativeTime,
    plan: Option<(String, String)>,
    source: Option<String>,
    version: Option<u32>,
    versions: Vec<VersionLink>,
    media_type: Option<String>,
    body: Body,
}

/// A version of an output.
pub(super) struct VersionLink {
    pub(super) id: String,
    pub(super) version: u32,
    pub(super) at: RelativeTime,
    pub(super) selected: bool,
}

/// The versions of an output, newest first; none if there is only one.
pub(super) async fn versions(
    visit: &Visit,
    output: &Output,
) -> Result<Vec<VersionLink>, PageError> {
    let engine = &visit.site.engine;
    let versions = engine
        .output_versions(&visit.caller, output.plan, &output.title, MAX_VERSIONS)
        .await?;
    if versions.len() < 2 {
        return Ok(Vec::new());
    }
    let now = engine.now();
    let link = |found: onward_engine::OutputVersion| VersionLink {
        id: found.id.to_string(),
        version: found.version,
        at: RelativeTime::new(found.created_at, now),
        selected: found.id == output.id,
    };
    Ok(versions.into_iter().map(link).collect())
}

/// The displayed text.
pub(super) enum Body {
    Rendered(MarkdownHtml),
    Source { text: String, is_markdown: bool },
}

impl Body {
    /// An output.
    pub(super) fn of_output(visit: &Visit, output: &Output) -> Self {
        Self::new(visit, &output.content, is_markdown(&output.media_type))
    }

    fn new(visit: &Visit, content: &str, is_markdown: bool) -> Self {
        if is_markdown && visit.fields.get("as") != Some("written") {
            Body::Rendered(MarkdownHtml::render(content, MAX_CHARS))
        } else {
            Body::Source {
                text: multiline(content, MAX_CHARS),
                is_markdown,
            }
        }
    }
}

/// Whether a media type is Markdown.
fn is_markdown(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("text/markdown") || essence.eq_ignore_ascii_case("text/x-markdown")
}

pub(super) async fn artifact(visit: Visit, Path(id): Path<String>) -> PageResult {
    let engine = &visit.site.engine;
    let not_found = || Error::NotFound {
        kind: ObjectKind::Artifact,
        name: one_line(&id, 100),
    };
    let artifact = id.parse().map_err(|_| not_found())?;
    let found = engine.artifact(&visit.caller, artifact).await?;
    render(&Text {
        layout: visit.layout(&found.title, Section::Library).await?,
        title: format::sanitize_line(&found.title),
        kind: one_line(&found.kind.replace('_', " "), 40),
        id: ShortId::new(found.id),
        at: RelativeTime::new(found.created_at, engine.now()),
        plan: plan_link(&visit, found.plan).await,
        source: found.source_url.as_deref().map(format::sanitize_line),
        version: None,
        versions: Vec::new(),
        media_type: None,
        body: Body::new(&visit, &found.content, true),
    })
}

pub(super) async fn output(visit: Visit, Path(id): Path<String>) -> PageResult {
    let engine = &visit.site.engine;
    let not_found = || Error::NotFound {
        kind: ObjectKind::Output,
        name: one_line(&id, 100),
    };
    let output = id.parse().map_err(|_| not_found())?;
    let found = engine.output(&visit.caller, output).await?;
    render(&Text {
        layout: visit.layout(&found.title, Section::Library).await?,
        title: format::sanitize_line(&found.title),
        kind: "output".to_owned(),
        id: ShortId::new(found.id),
        at: RelativeTime::new(found.created_at, engine.now()),
        plan: plan_link(&visit, Some(found.plan)).await,
        source: None,
        version: Some(found.version),
        versions: versions(&visit, &found).await?,
        media_type: Some(one_line(&found.media_type, 100)),
        body: Body::of_output(&visit, &found),
    })
}

/// Id and name of the plan, if it still exists.
async fn plan_link(visit: &Visit, plan: Option<PlanId>) -> Option<(String, String)> {
    let plan = plan?;
    let sheet = visit.site.engine.sheet(&visit.caller, plan).await.ok()?;
    Some((plan.to_string(), format::sanitize_line(&sheet.brief.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_markdown_media_types() {
        for markdown in [
            "text/markdown",
            "Text/Markdown; charset=utf-8",
            "text/x-markdown",
        ] {
            assert!(is_markdown(markdown), "{markdown}");
        }
        for other in ["", "text/plain", "application/json", "text/markdownish"] {
            assert!(!is_markdown(other), "{other}");
        }
    }
}
