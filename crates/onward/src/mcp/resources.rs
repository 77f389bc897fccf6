//! MCP resources: active plans, a plan as Markdown, its audit trail, an artifact, an output, a
//! session's health, and the caller's profile.
//!
//! A session id may contain any character, so it is percent-encoded in the URI. Two encodings of
//! the same id name the same session.

use onward_core::{PlanId, Timestamp};
use onward_engine::audit::ALL_TIMES;
use onward_engine::list::PlanQuery;
use onward_engine::{Caller, Engine, Error, Subject, TextId};
use percent_encoding::percent_decode_str;
use rmcp::model::{
    Annotations, CacheScope, ErrorCode, ErrorData, ListResourceTemplatesResult,
    ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{CONSTANT_TTL_MS, icon, protocol_error};
use crate::instructions::{self, SKILL_DESCRIPTION, SKILL_NAME, SKILL_URI};
use crate::markdown;
use crate::output::format;
use crate::wire::call::SessionHealth;
use crate::wire::event::Audit;
use crate::wire::notice::{self, NOTICE};
use crate::wire::plan::Plans;
use crate::wire::profile::Profile;
use crate::wire::text::{DEFAULT_PAGE, MAX_PAGE, Text};

const PLANS: &str = "onward://plans";
const PROFILE: &str = "onward://user/profile";
const PLAN: &str = "onward://plan/";
const AUDIT: &str = "/audit";
const ARTIFACT: &str = "onward://artifact/";
const OUTPUT: &str = "onward://output/";
const SESSION: &str = "onward://session/";
const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

/// Plans in the resource list and in `onward://plans`.
const MAX_PLANS: u32 = 100;
/// Events and bytes of an audit trail; the API returns the rest in pages.
const AUDIT_EVENTS: u32 = 10_000;
const AUDIT_BYTES: u64 = 512 * 1024;
/// Plans in the resource list that have a size: they are rendered to determine it.
const MAX_SIZED_PLANS: usize = 20;
const MAX_SIZED_BYTES: u64 = 64 * 1024;
/// Bytes of a plan that is rendered as Markdown.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// A parsed resource URI.
enum ResourceUri {
    Plans,
    Profile,
    Skill,
    Plan(PlanId),
    Audit(PlanId),
    Session(String),
    /// A page of a text: `?offset=` and `&maxChars=` are optional.
    Text(TextId, Page),
}

/// The selected page of a text.
struct Page {
    offset: u32,
    max_chars: u32,
}

fn parse(uri: &str) -> Option<ResourceUri> {
    match uri {
        PLANS => Some(ResourceUri::Plans),
        PROFILE => Some(ResourceUri::Profile),
        SKILL_URI => Some(ResourceUri::Skill),
        uri if uri.starts_with(ARTIFACT) || uri.starts_with(OUTPUT) => parse_text(uri),
        uri => match (uri.strip_prefix(PLAN), uri.strip_prefix(SESSION)) {
            (Some(plan), _) => match plan.strip_suffix(AUDIT) {
                Some(plan) => plan.parse().ok().map(ResourceUri::Audit),
                None => plan.parse().ok().map(ResourceUri::Plan),
            },
            (None, Some(session)) => {
                let session = percent_decode_str(session).decode_utf8().ok()?;
                (!session.is_empty()).then(|| ResourceUri::Session(session.into_owned()))
            }
            (None, None) => None,
        },
    }
}

fn parse_text(uri: &str) -> Option<ResourceUri> {
    let (uri, query) = uri.split_once('?').unwrap_or((uri, ""));
    let id = match uri.strip_prefix(ARTIFACT) {
        Some(id) => TextId::Artifact(id.parse().ok()?),
        None => TextId::Output(uri.strip_prefix(OUTPUT)?.parse().ok()?),
    };
    let mut page = Page {
        offset: 0,
        max_chars: DEFAULT_PAGE,
    };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=')? {
            ("offset", offset) => page.offset = offset.parse().ok()?,
            ("maxChars", chars) => page.max_chars = chars.parse().ok()?,
            _ => return None,
        }
    }
    (1..=MAX_PAGE)
        .contains(&page.max_chars)
        .then_some(ResourceUri::Text(id, page))
}

fn parse_or_not_found(uri: &str) -> Result<ResourceUri, ErrorData> {
    parse(uri).ok_or_else(|| {
        let message = format!("no resource `{}`", truncated(uri));
        ErrorData::resource_not_found(message, None)
    })
}

/// The part of a URI that an error repeats.
fn truncated(uri: &str) -> String {
    uri.chars().take(200).collect()
}

/// Adds the URI to a `resource not found` error, as the protocol requires.
pub(super) fn with_uri(uri: &str) -> impl Fn(ErrorData) -> ErrorData {
    move |mut error| {
        if error.code == ErrorCode::RESOURCE_NOT_FOUND {
            let mut data = error
                .data
                .take()
                .unwrap_or_else(|| Value::Object(Map::new()));
            if let Value::Object(data) = &mut data {
                data.insert("uri".to_owned(), truncated(uri).into());
            }
            error.data = Some(data);
        }
        error
    }
}

/// Whether the URI has the form of a resource. The resource need not exist.
pub(super) fn is_valid(uri: &str) -> bool {
    parse(uri).is_some()
}

/// Whether the change affects the content of the resource.
pub(super) fn is_affected(uri: &str, changed: &Subject) -> bool {
    use ResourceUri::{Audit, Plan, Plans, Profile, Session, Skill, Text};
    match (parse(uri), changed) {
        (Some(Plans), Subject::Plan(_))
        | (Some(Plans | Plan(_) | Audit(_) | Session(_)), Subject::All) => true,
        (Some(Plan(id) | Audit(id)), Subject::Plan(plan)) => id == *plan,
        (Some(Session(id)), Subject::Session(session)) => id == **session,
        (Some(Profile | Skill), _)
        // A stored text does not change.
        | (Some(Text(..)), _)
        | (Some(Plans | Plan(_) | Audit(_)), Subject::Session(_))
        | (Some(Session(_)), Subject::Plan(_))
        | (None, _) => false,
    }
}

/// The static resources and the unfinished plans, most recently changed first.
pub(super) async fn list(
    engine: &Engine,
    caller: &Caller,
) -> Result<ListResourcesResult, ErrorData> {
    let page = engine.list_plans(caller, active()).await;
    let page = page.map_err(protocol_error)?;
    // The most recently changed plan is the first.
    let changed_at = page.plans.first().map(|listed| listed.sheet.updated_at);
    let mut all = vec![
        Resource::new(PLANS, "plans")
            .with_title("Active plans")
            .with_description("Unfinished plans with status and progress, recently changed first")
            .with_mime_type(JSON)
            .with_size(size(&json(&Plans::new(&page))?))
            .with_annotations(annotations(1.0, changed_at)),
        Resource::new(PROFILE, "profile")
            .with_title("User profile")
            .with_description("Your user, tenant and role, and whether you may decide reviews")
            .with_mime_type(JSON)
            .with_size(size(&json(&Profile::new(caller))?))
            .with_annotations(annotations(0.1, None)),
        Resource::new(SKILL_URI, SKILL_NAME)
            .with_title("Skill for plans")
            .with_description(SKILL_DESCRIPTION)
            .with_mime_type(MARKDOWN)
            .with_size(size(&instructions::skill()))
            .with_annotations(annotations(0.1, None)),
    ];
    let ids = page.plans.iter().map(|listed| listed.sheet.head.id);
    let sizes = plan_sizes(engine, caller, ids).await;
    let sizes = sizes.into_iter().chain(std::iter::repeat(None));
    all.extend(page.plans.iter().zip(sizes).map(|(listed, size)| {
        let sheet = &listed.sheet;
        let mut listed = plan(&sheet.head.id.to_string())
            .with_title(format::sanitize_line(&sheet.brief.name))
            .with_annotations(annotations(PLAN_PRIORITY, Some(sheet.updated_at)));
        listed.size = size;
        listed
    }));
    let all = all
        .into_iter()
        .map(|resource| resource.with_icons(icon::icons()))
        .collect();
    Ok(ListResourcesResult::with_all_items(all))
}

const PLAN_PRIORITY: f32 = 0.8;

/// Annotations of a resource for users and agents. A larger priority is more important.
fn annotations(priority: f32, changed_at: Option<Timestamp>) -> Annotations {
    let audience = vec![Role::User, Role::Assistant];
    let mut annotations = Annotations::default()
        .with_audience(audience)
        .with_priority(priority);
    annotations.last_modified = changed_at.map(|at| at.to_string());
    annotations
}

fn size(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

/// A plan.
pub(super) fn plan(id: &str) -> Resource {
    Resource::new(format!("{PLAN}{id}"), "plan")
        .with_title("Plan")
        .with_mime_type(MARKDOWN)
        .with_annotations(annotations(PLAN_PRIORITY, None))
}

/// A stored artifact.
pub(super) fn artifact(id: &str) -> Resource {
    Resource::new(format!("{ARTIFACT}{id}"), "artifact")
        .with_title("Artifact")
        .with_mime_type(JSON)
        .with_annotations(annotations(0.5, None))
}

/// An output of a plan.
pub(super) fn output(id: &str) -> Resource {
    Resource::new(format!("{OUTPUT}{id}"), "output")
        .with_title("Plan output")
        .with_mime_type(JSON)
        .with_annotations(annotations(1.0, None))
}

/// The page on which a user decides a review. It is for users only.
pub(super) fn review_page(url: &str) -> Resource {
    let annotations = Annotations::default()
        .with_audience(vec![Role::User])
        .with_priority(1.0);
    Resource::new(url, "review")
        .with_title("Review")
        .with_mime_type("text/html")
        .with_annotations(annotations)
}

pub(super) fn templates() -> ListResourceTemplatesResult {
    let templates = vec![
        ResourceTemplate::new(format!("{PLAN}{{planId}}"), "plan")
            .with_title("Plan")
            .with_description("A plan with its steps and results, as Markdown")
            .with_mime_type(MARKDOWN),
        ResourceTemplate::new(format!("{PLAN}{{planId}}{AUDIT}"), "audit")
            .with_title("Plan audit trail")
            .with_description("All events of a plan, oldest first")
            .with_mime_type(JSON),
        ResourceTemplate::new(
            format!("{ARTIFACT}{{artifactId}}{{?offset,maxChars}}"),
            "artifact",
        )
        .with_title("Artifact")
        .with_description("A page of an artifact's text; `nextOffset` is the next `offset`")
        .with_mime_type(JSON),
        ResourceTemplate::new(
            format!("{OUTPUT}{{outputId}}{{?offset,maxChars}}"),
            "output",
        )
        .with_title("Plan output")
        .with_description("A page of an output's text; `nextOffset` is the next `offset`")
        .with_mime_type(JSON),
        ResourceTemplate::new(format!("{SESSION}{{sessionId}}"), "session")
            .with_title("Session health")
            .with_description("The current turn, tool calls and plans of an agent session")
            .with_mime_type(JSON),
    ];
    let templates = templates
        .into_iter()
        .map(|template| template.with_icons(icon::icons()));
    ListResourceTemplatesResult::with_all_items(templates.collect())
        .with_ttl_ms(CONSTANT_TTL_MS)
        .with_cache_scope(CacheScope::Public)
}

pub(super) async fn check_exists(
    engine: &Engine,
    caller: &Caller,
    uri: &str,
) -> Result<(), ErrorData> {
    match parse_or_not_found(uri)? {
        ResourceUri::Plans | ResourceUri::Profile | ResourceUri::Skill => {}
        ResourceUri::Plan(plan) | ResourceUri::Audit(plan) => {
            let sheet = engine.sheet(caller, plan).await;
            sheet.map_err(protocol_error)?;
        }
        ResourceUri::Session(session) => {
            let health = engine.session_health(caller, &session).await;
            health.map_err(protocol_error)?;
        }
        ResourceUri::Text(id, _) => {
            let page = engine.read_text(caller, id, 0, 1).await;
            page.map_err(protocol_error)?;
        }
    }
    Ok(())
}

pub(super) async fn read(
    engine: &Engine,
    caller: &Caller,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let (text, mime_type) = match parse_or_not_found(uri)? {
        ResourceUri::Plans => {
            let page = engine.list_plans(caller, active()).await;
            (json(&Plans::new(&page.map_err(protocol_error)?))?, JSON)
        }
        ResourceUri::Profile => (json(&Profile::new(caller))?, JSON),
        ResourceUri::Skill => (instructions::skill(), MARKDOWN),
        ResourceUri::Plan(plan) => {
            let text = plan_text(engine, caller, plan, MAX_BYTES).await;
            (text.map_err(protocol_error)?, MARKDOWN)
        }
        ResourceUri::Audit(plan) => (noted_json(&audit(engine, caller, plan).await?)?, JSON),
        ResourceUri::Text(id, Page { offset, max_chars }) => {
            let page = engine.read_text(caller, id, offset, max_chars).await;
            let text = Text::new(page.map_err(protocol_error)?, offset);
            (noted_json(&text)?, JSON)
        }
        ResourceUri::Session(session) => {
            let health = engine.session_health(caller, &session).await;
            (
                json(&SessionHealth::new(&health.map_err(protocol_error)?))?,
                JSON,
            )
        }
    };
    let contents = ResourceContents::text(text, uri).with_mime_type(mime_type);
    Ok(ReadResourceResult::new(vec![contents]))
}

/// A plan as Markdown.
async fn plan_text(
    engine: &Engine,
    caller: &Caller,
    plan: PlanId,
    max_bytes: u64,
) -> Result<String, Error> {
    let plan = markdown::plan(&engine.full_plan_within(caller, plan, max_bytes).await?);
    // The first line is the plan's title.
    let (title, rest) = plan.split_once('\n').unwrap_or((&plan, ""));
    Ok(format!("{title}\n\n> {NOTICE}\n{rest}"))
}

/// The sizes of the first plans of a list. A large plan has none: it is not rendered for its size.
async fn plan_sizes(
    engine: &Engine,
    caller: &Caller,
    plans: impl Iterator<Item = PlanId>,
) -> Vec<Option<u64>> {
    let sizes = plans.take(MAX_SIZED_PLANS).map(|plan| async move {
        let text = plan_text(engine, caller, plan, MAX_SIZED_BYTES).await;
        text.ok().map(|text| size(&text))
    });
    futures_util::future::join_all(sizes).await
}

/// The audit trail up to the size of a resource.
async fn audit(engine: &Engine, caller: &Caller, plan: PlanId) -> Result<Audit, ErrorData> {
    let page = engine.audit_page(caller, plan, ALL_TIMES, 0, AUDIT_EVENTS, AUDIT_BYTES);
    let events = page.await.map_err(protocol_error)?;
    let last = events.last().map_or(0, |event| event.entry.seq);
    let more = engine.audit_page(caller, plan, ALL_TIMES, last, 1, 1).await;
    let is_truncated = !more.map_err(protocol_error)?.is_empty();
    Ok(Audit::new(plan, events).truncated(is_truncated))
}

fn active() -> PlanQuery {
    PlanQuery {
        limit: MAX_PLANS,
        ..PlanQuery::default()
    }
}

/// A response that contains texts of agents or sources.
fn noted_json(value: &impl Serialize) -> Result<String, ErrorData> {
    let value = serde_json::to_value(value);
    let mut value = value.map_err(|why| ErrorData::internal_error(why.to_string(), None))?;
    notice::add(&mut value);
    json(&value)
}

fn json(value: &impl Serialize) -> Result<String, ErrorData> {
    serde_json::to_string(value).map_err(|why| ErrorData::internal_error(why.to_string(), None))
}
