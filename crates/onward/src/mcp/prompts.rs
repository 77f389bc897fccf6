//! Prompts that users pick in their agent's menu: run, resume or design a plan.

use onward_engine::{Caller, Engine};
use rmcp::model::{
    CacheScope, ErrorData, GetPromptRequestParams, GetPromptResult, ListPromptsResult, Prompt,
    PromptArgument, PromptMessage, Role,
};

use super::{CONSTANT_TTL_MS, Setup, icon, protocol_error};
use crate::config::location;
use crate::instructions;
use crate::output::format;
use crate::plan_template::{self, PROJECT_DIRECTORY, Scope, Template};

const RUN: &str = "run_plan";
const RESUME: &str = "resume_plan";
const DESIGN: &str = "design_plan";
const INSTRUCTIONS: &str = "plan_instructions";
/// Maximum number of templates that the prompt names.
const MAX_TEMPLATES: usize = 20;

pub(super) fn list() -> ListPromptsResult {
    let plan = || {
        PromptArgument::new("planId")
            .with_description("Id of the plan")
            .with_required(true)
    };
    let question = PromptArgument::new("question")
        .with_description("Question to answer, or goal to reach")
        .with_required(true);
    let prompt = |name, title, description, argument| {
        Prompt::new(name, Some(description), Some(vec![argument]))
            .with_title(title)
            .with_icons(icon::icons())
    };
    ListPromptsResult::with_all_items(vec![
        prompt(
            RUN,
            "Run a plan",
            "Work through all steps of a plan until it is complete",
            plan(),
        ),
        prompt(
            RESUME,
            "Resume a plan",
            "Resume a plan that another session started",
            plan(),
        ),
        prompt(
            DESIGN,
            "Design a plan",
            "Turn a question or task into a multi-step plan and store it",
            question,
        ),
        Prompt::new(
            INSTRUCTIONS,
            Some("When to use plans, the loop, resuming, reviews and rejected calls"),
            None,
        )
        .with_title("Instructions for plans")
        .with_icons(icon::icons()),
    ])
    .with_ttl_ms(CONSTANT_TTL_MS)
    .with_cache_scope(CacheScope::Public)
}

pub(super) async fn get(
    setup: &Setup,
    caller: &Caller,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|all| all.get(name));
        let value = value.and_then(|value| value.as_str()).map(str::trim);
        value
            .filter(|value| !value.is_empty())
            .ok_or_else(|| ErrorData::invalid_params(format!("`{name}` is required"), None))
    };
    let engine = &setup.tool_context.engine;
    let text = match request.name.as_str() {
        RUN => run(&find_plan(engine, caller, argument("planId")?).await?),
        RESUME => resume(&find_plan(engine, caller, argument("planId")?).await?),
        DESIGN => {
            let templates = setup.directory.as_deref().map(plan_template::list);
            design(argument("question")?, &templates.unwrap_or_default())
        }
        INSTRUCTIONS => instructions::text().to_owned(),
        other => {
            let other: String = other.chars().take(100).collect();
            let message = format!("unknown prompt `{other}`");
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    let text = setup.tool_set.rename(&text).into_owned();
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]))
}

/// A plan that exists.
struct Plan {
    id: String,
    /// The name in quotes.
    name: String,
}

async fn find_plan(engine: &Engine, caller: &Caller, id: &str) -> Result<Plan, ErrorData> {
    let not_found = |_| {
        protocol_error(onward_engine::Error::PlanNotFound(
            id.chars().take(100).collect(),
        ))
    };
    let plan = id.parse().map_err(not_found)?;
    let sheet = engine.sheet(caller, plan).await;
    let sheet = sheet.map_err(protocol_error)?;
    Ok(Plan {
        id: plan.to_string(),
        name: format::quoted_name(&sheet.brief.name),
    })
}

/// The instructions for each step, common to running and resuming.
const LOOP: &str = "Follow the step's `instructions` completely before you continue. During long \
    steps, call `report_step_progress` every few minutes. Then call `submit_step_result` with the \
    step's `claimToken`, your findings in `resultSummary`, data in `result`, your certainty in \
    `confidence`, and `claimNext: true`. Continue with the returned `nextStep`. When a step needs \
    my decision, call `request_user_review` and tell me. When your findings require different \
    steps, call `modify_plan`. At `plan_complete`, write the output according to its formatting \
    notes, store it with `store_research_output` and show it to me. At `plan_failed` or `awaiting_review`, stop and tell me why.";

fn run(Plan { id, name }: &Plan) -> String {
    format!(
        "Work through the plan {name} until it is complete. Call `get_next_step` with planId \
         `{id}`. {LOOP}"
    )
}

fn resume(Plan { id, name }: &Plan) -> String {
    format!(
        "Resume the plan {name}, which another session started. First call \
         `get_research_context` with planId `{id}` to read the completed work. Do not repeat it. \
         Then call `get_next_step` with planId `{id}` and `includeStalled: true` to take over a \
         stalled step first. Check what the other session already did for that step. {LOOP}"
    )
}

fn design(question: &str, templates: &[Template]) -> String {
    let mut text = format!(
        "Design a plan for the following and store it with `create_research_plan`:\n\n\
         {question}\n\n\
         Split the work into steps that one agent can complete in one session. Write \
         self-contained `instructions` for each step: what to do, which inputs to use, and what \
         the result must contain. Set a `stepType`. Use `dependsOn` only if a step needs the \
         result of another. Add a `critique` step before the final `synthesize` step. If the next \
         steps depend on a result, add `branchingConditions`, such as `confidence < 0.5` with \
         `add_steps`. Show me the plan before you start it."
    );
    if !templates.is_empty() {
        let names = templates.iter().take(MAX_TEMPLATES).map(|template| {
            let place = match template.scope {
                Scope::Project => format!("{PROJECT_DIRECTORY}/{}.md", template.name),
                Scope::User => location::display(&template.path),
            };
            format!("`{}` ({})", template.name, format::sanitize_line(&place))
        });
        let names: Vec<String> = names.collect();
        text.push_str(&format!(
            "\n\nPlan templates exist: {}. If one fits, start from its steps. \
             `onward plan template show NAME --json` prints its arguments.",
            names.join(", ")
        ));
    }
    text
}
