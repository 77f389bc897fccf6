//! `get_research_context`: returns the context for resuming a plan in a new session, or a page of a
//! step's text that another response cut.
//!
//! The first call with a new `sessionId` records that the session resumed the plan. The tool is
//! therefore idempotent but not read-only.

use onward_core::policy::MAX_SESSION_ID;
use onward_engine::Caller;
use onward_engine::context::{MAX_CHARS, Part};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Hints, Spec, ToolContext, ToolError, params};
use crate::wire::context::{Context, PlanContext, TextPage};

pub(super) struct GetResearchContext;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Plan id
    plan_id: String,
    /// Session id
    #[schemars(length(min = 1, max = MAX_SESSION_ID))]
    session_id: Option<String>,
    /// Response size limit; default 7900
    #[schemars(range(min = 1, max = MAX_CHARS))]
    max_chars: Option<usize>,
    /// Only a text of this step, from `offset` on
    step_id: Option<String>,
    part: Option<TextPart>,
    /// Position in the text, in characters
    offset: Option<usize>,
}

/// instructions (default), resultSummary, result, stepExecutionReport, outputFormattingNotes,
/// review, evidence: the text to read
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum TextPart {
    Instructions,
    ResultSummary,
    Result,
    StepExecutionReport,
    OutputFormattingNotes,
    Review,
    Evidence,
}

impl From<TextPart> for Part {
    fn from(part: TextPart) -> Self {
        match part {
            TextPart::Instructions => Part::Instructions,
            TextPart::ResultSummary => Part::ResultSummary,
            TextPart::Result => Part::Result,
            TextPart::StepExecutionReport => Part::Report,
            TextPart::OutputFormattingNotes => Part::FormattingNotes,
            TextPart::Review => Part::Review,
            TextPart::Evidence => Part::Evidence,
        }
    }
}

impl Spec for GetResearchContext {
    type Input = Input;
    type Output = Context;

    const NAME: &'static str = "get_research_context";
    const TITLE: &'static str = "Get the context to resume a plan";
    const DESCRIPTION: &'static str = "Read the context for resuming a plan of another session: \
        results, artifacts, open review, steps of other sessions. Then follow `next`.";
    const HINTS: Hints = Hints {
        read_only: false,
        idempotent: true,
        destructive: false,
    };
    const HAS_NOTICE: bool = true;
    const IN_CORE: bool = true;
    const HAS_MAX_CHARS: bool = true;
    // A response that cuts a text names them.
    const UNLISTED: &'static [&'static str] = &[
        "/properties/stepId",
        "/properties/part",
        "/properties/offset",
    ];

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<Context, ToolError> {
        let plan = params::plan_id(&input.plan_id)?;
        if let Some(step) = &input.step_id {
            let step = params::step_id(step)?;
            let part = input.part.map_or(Part::Instructions, Part::from);
            let offset = input.offset.unwrap_or(0);
            let page = context
                .engine
                .step_text(caller, plan, step, part, offset, input.max_chars);
            return Ok(Context::Text(TextPage::new(page.await?)));
        }
        let session = params::session_id(input.session_id);
        let loaded = context
            .engine
            .plan_context(caller, plan, session, input.max_chars);
        let loaded = PlanContext::new(loaded.await?, &context.dashboard.review_links());
        Ok(Context::Plan(Box::new(loaded)))
    }
}
