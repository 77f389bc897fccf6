//! `/decide/{token}`: the confirmation page of a decision link.
//!
//! The token is the credential, so the page needs no session. Its form needs no CSRF token: a page of
//! another site does not know the address, and the middleware rejects its origin. Chat programs fetch
//! the links of a message, so only the form decides. A link works once, because a review is decided
//! once; every later request displays the decision.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use onward_core::Role;
use onward_core::event::{DecidedBy, Decision};
use onward_core::id::ReviewId;
use onward_core::step::ReviewScope;
use onward_engine::list::OpenReview;
use onward_engine::step::ReviewDecision;
use onward_engine::{Caller, Error};

use super::format::{Clock, one_line, sentence};
use super::inbox::decided_text;
use super::layout::{Layout, flash, render};
use super::review_form::{FormError, ReviewForm, ReviewView, SubmittedForm};
use super::{PageError, PageResult, fields, run_to_completion};
use crate::decision_link::DecisionLink;
use crate::output::trail;
use crate::web::Site;
use crate::web::body::DOCUMENT;
use crate::wire::notification::button_label;

#[derive(Template)]
#[template(path = "decide.html")]
struct Page {
    layout: Layout,
    content: Content,
}

enum Content {
    Confirm(Box<Confirm>),
    Message(Message),
}

/// A pending review, and the decision to confirm.
struct Confirm {
    row: ReviewView,
    action: Decision,
    label: &'static str,
    effect: String,
    recipient: String,
    expires: Clock,
}

/// Why there is nothing to confirm, or the confirmed decision.
struct Message {
    status: StatusCode,
    /// For tests and scripts.
    code: &'static str,
    title: &'static str,
    text: String,
    at: Option<Clock>,
    /// Plan and step.
    subject: Option<String>,
    review: Option<ReviewId>,
}

/// A valid link of a pending review.
struct Valid {
    link: DecisionLink,
    /// The holder of the link, who may decide this review only.
    caller: Caller,
    open: OpenReview,
}

pub(super) async fn show(State(site): State<Arc<Site>>, Path(token): Path<String>) -> PageResult {
    match resolve(&site, &token).await? {
        Ok(valid) => confirm(&site, valid, None).await,
        Err(message) => message.render(),
    }
}

pub(super) async fn submit(
    State(site): State<Arc<Site>>,
    Path(token): Path<String>,
    request: Request,
) -> PageResult {
    // Before the body is read.
    let valid = match resolve(&site, &token).await? {
        Ok(valid) => valid,
        Err(message) => return message.render(),
    };
    let Valid { link, caller, open } = &valid;
    let (parts, body) = request.into_parts();
    let bodies = &site.limits.bodies;
    let principal = site.auth.principal(&caller.name, caller.clone());
    let body = bodies.read_form(&principal, &parts.headers, body, DOCUMENT);
    let body = body.await?;
    let form = fields(parts, body.bytes).await?;
    let form = SubmittedForm::new(form, open.review.questions.len());
    // Only approval has answers.
    let asked = (link.action == Decision::Approve).then_some(&open.review);
    let decision = ReviewDecision {
        review: Some(link.review),
        link_recipient: Some(link.recipient.clone()),
        ..form.decision(link.step, link.action, asked)
    };
    let (engine, caller) = (site.engine.clone(), caller.clone());
    let result = run_to_completion(async move { engine.decide_review(&caller, decision).await });
    match result.await {
        Ok(_) => Message::done(link, open.review.scope).render(),
        Err(PageError(problem)) => match resolve(&site, &token).await? {
            Err(message) => message.render(),
            Ok(valid) if problem.page_text().0 == StatusCode::BAD_REQUEST => {
                confirm(&site, valid, Some(form.into_error(&problem))).await
            }
            Ok(_) => Err(PageError(problem)),
        },
    }
}

/// The pending review of a link, or the reason why the link cannot be used.
async fn resolve(site: &Site, token: &str) -> Result<Result<Valid, Message>, PageError> {
    let engine = &site.engine;
    let Some(link) = site.link_signer.as_ref().and_then(|key| key.verify(token)) else {
        return Ok(Err(Message::invalid()));
    };
    let name = format!("link:{}", link.recipient);
    let caller = match engine.operator(&link.tenant, &name).await {
        Ok(operator) => Caller {
            role: Role::Member,
            ..operator
        },
        Err(Error::NotFound { .. }) => return Ok(Err(Message::invalid())),
        Err(error) => return Err(error.into()),
    };
    let now = engine.now();
    if link.is_expired(now) {
        return Ok(Err(Message {
            at: Some(Clock::new(link.expires_at, now)),
            review: Some(link.review),
            ..Message::new(
                StatusCode::GONE,
                "expired",
                "Link expired",
                "The link expired",
            )
        }));
    }
    let (sheet, step) = match engine.step(&caller, link.step).await {
        Ok(found) => found,
        Err(Error::StepNotFound { .. }) => return Ok(Err(Message::ended())),
        Err(error) => return Err(error.into()),
    };
    let subject = format!("{}: step {}", one_line(&sheet.brief.name, 200), step.order);
    let open = OpenReview::from_step(sheet.head.id, step);
    let open = open.filter(|open| open.id == link.review && !sheet.head.status().is_terminal());
    if let Some(open) = open {
        return Ok(Ok(Valid { link, caller, open }));
    }
    let closed = |message: Message| Message {
        subject: Some(subject),
        review: Some(link.review),
        ..message
    };
    let Some(decided) = engine.review_decision(&caller, link.review).await? else {
        return Ok(Err(closed(Message::ended())));
    };
    let recipient = link.recipient;
    let is_used = decided.decision == link.action && decided.by == DecidedBy::Link { recipient };
    let (code, title) = if is_used {
        ("used", "Link already used")
    } else {
        ("decided", "Already decided")
    };
    let decider = trail::decider(&decided.author.name, &decided.by);
    let text = format!(
        "{} {}",
        one_line(&decider, 240),
        decided_text(decided.decision)
    );
    Ok(Err(closed(Message {
        at: Some(Clock::new(decided.at, now)),
        ..Message::new(StatusCode::CONFLICT, code, title, text)
    })))
}

async fn confirm(site: &Site, valid: Valid, error: Option<FormError>) -> PageResult {
    let Valid { link, caller, open } = valid;
    let is_error = error.is_some();
    let form = ReviewForm::load(&site.engine, &caller, &open).await?;
    let row = form.with_error(error).row;
    let label = button_label(link.action, open.review.scope);
    let order = row.order;
    let effect = match link.action {
        Decision::Approve if row.is_start => "The plan starts.".to_owned(),
        Decision::Approve if row.is_result => format!("The result completes step {order}."),
        Decision::Approve | Decision::Modify => {
            format!("The summary becomes the result of step {order}. The agent gets your answers.")
        }
        Decision::Skip => format!("Step {order} ends without a result; the plan continues."),
        Decision::Reject if row.is_start => "The plan fails.".to_owned(),
        Decision::Reject => format!("Step {order} and the whole plan fail."),
    };
    let page = Page {
        layout: layout(label),
        content: Content::Confirm(Box::new(Confirm {
            row,
            action: link.action,
            label,
            effect,
            recipient: one_line(&link.recipient, 240),
            expires: Clock::new(link.expires_at, site.engine.now()),
        })),
    };
    let mut response = render(&page)?;
    if is_error {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    Ok(response)
}

fn layout(title: &str) -> Layout {
    let mut layout = Layout::anonymous(title);
    layout.has_navigation = false;
    layout
}

impl Confirm {
    fn is_approval(&self) -> bool {
        self.action == Decision::Approve
    }

    fn is_rejection(&self) -> bool {
        self.action == Decision::Reject
    }
}

impl Message {
    fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        text: impl Into<String>,
    ) -> Self {
        Self {
            status,
            code,
            title,
            text: text.into(),
            at: None,
            subject: None,
            review: None,
        }
    }

    /// The same for a malformed token, a wrong signature and an unknown tenant.
    fn invalid() -> Self {
        let text = "The link is incomplete, or the server's secret has changed";
        Self::new(StatusCode::NOT_FOUND, "invalid", "Invalid link", text)
    }

    /// A review without a decision that is no longer pending.
    fn ended() -> Self {
        let text = "The plan ended, or the step was removed, before a decision";
        Self::new(StatusCode::CONFLICT, "ended", "Review ended", text)
    }

    fn done(link: &DecisionLink, scope: ReviewScope) -> Self {
        let text = match (link.action, scope) {
            (Decision::Approve, ReviewScope::Start) => "Approved. The plan starts.",
            (action, _) => flash(action.as_str()).unwrap_or_default(),
        };
        Self {
            review: Some(link.review),
            ..Self::new(StatusCode::OK, "done", "Decided", text)
        }
    }

    fn render(self) -> PageResult {
        let status = self.status;
        let page = Page {
            layout: layout(self.title),
            content: Content::Message(Self {
                text: match self.at {
                    Some(_) => self.text,
                    None => sentence(&self.text),
                },
                ..self
            }),
        };
        let mut response = render(&page)?;
        *response.status_mut() = status;
        Ok(response)
    }
}
