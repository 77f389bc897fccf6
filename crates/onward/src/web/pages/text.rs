//! `/artifacts/{id}` and `/outputs/{id}`: one text that was stored, with where it belongs. Markdown is
//! shown as what it means; `?as=written` shows every text as it is.

use askama::Template;
use axum::extract::Path;
use onward_core::PlanId;
use onward_engine::Error;

use super::frame::{Frame, Section, render};
use super::prose::Prose;
use super::show::{When, gist, text};
use super::{Page, Visit};
use crate::output::words;

/// How much of a text is shown: no browser likes more on one page.
const LONGEST: usize = 200_000;

#[derive(Template)]
#[template(path = "text.html")]
struct Text {
    frame: Frame,
    title: String,
    kind: String,
    id: String,
    at: When,
    plan: Option<(String, String)>,
    source: Option<String>,
    version: Option<u32>,
    media_type: Option<String>,
    body: Body,
}

/// The text itself.
enum Body {
    /// As what it means.
    Prose(Prose),
    /// As it was written, which may mean something.
    Written { text: String, means: bool },
}

impl Body {
    fn of(visit: &Visit, content: &str, means: bool) -> Self {
        match means && visit.fields.get("as") != Some("written") {
            true => Body::Prose(Prose::of(content, LONGEST)),
            false => Body::Written {
                text: text(content, LONGEST),
                means,
            },
        }
    }
}

/// Whether texts of this type are Markdown, or may be written like it.
fn is_markdown(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("text/markdown") || essence.eq_ignore_ascii_case("text/x-markdown")
}

pub(super) async fn artifact(visit: Visit, Path(id): Path<String>) -> Page {
    let engine = &visit.site.engine;
    let unknown = || Error::NotFound {
        what: "artifact",
        name: gist(&id, 100),
    };
    let named = id.parse().map_err(|_| unknown())?;
    let found = engine.artifact(&visit.caller, named).await?;
    render(&Text {
        frame: visit.frame(&found.title, Section::Search).await?,
        title: words::line(&found.title),
        kind: gist(&found.kind.replace('_', " "), 40),
        id: found.id.to_string(),
        at: When::new(found.created_at, engine.now()),
        plan: belongs(&visit, found.plan).await,
        source: found.source_url.as_deref().map(words::line),
        version: None,
        media_type: None,
        body: Body::of(&visit, &found.content, true),
    })
}

pub(super) async fn output(visit: Visit, Path(id): Path<String>) -> Page {
    let engine = &visit.site.engine;
    let unknown = || Error::NotFound {
        what: "output",
        name: gist(&id, 100),
    };
    let named = id.parse().map_err(|_| unknown())?;
    let found = engine.output(&visit.caller, named).await?;
    render(&Text {
        frame: visit.frame(&found.title, Section::Search).await?,
        title: words::line(&found.title),
        kind: "output".to_owned(),
        id: found.id.to_string(),
        at: When::new(found.created_at, engine.now()),
        plan: belongs(&visit, Some(found.plan)).await,
        source: None,
        version: Some(found.version),
        media_type: Some(gist(&found.media_type, 100)),
        body: Body::of(&visit, &found.content, is_markdown(&found.media_type)),
    })
}

/// The plan's address and name, if it is still there.
async fn belongs(visit: &Visit, plan: Option<PlanId>) -> Option<(String, String)> {
    let plan = plan?;
    let sheet = visit.site.engine.sheet(&visit.caller, plan).await.ok()?;
    Some((plan.to_string(), words::line(&sheet.brief.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_known_by_its_type() {
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
