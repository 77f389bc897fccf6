//! Prompts: what a person can pick in their agent's menu. Each says the loop in the agent's words.

use onward_engine::{Caller, Engine};
use rmcp::model::{
    ErrorData, GetPromptRequestParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument,
    PromptMessage, Role,
};

use super::error;

const RUN: &str = "run_plan";
const RESUME: &str = "resume_plan";
const DESIGN: &str = "design_plan";

pub(super) fn list() -> ListPromptsResult {
    let plan = || {
        PromptArgument::new("planId")
            .with_description("The plan's id")
            .with_required(true)
    };
    let question = PromptArgument::new("question")
        .with_description("What you want to know, or to have done")
        .with_required(true);
    let prompt = |name, title, says, argument| {
        Prompt::new(name, Some(says), Some(vec![argument])).with_title(title)
    };
    ListPromptsResult::with_all_items(vec![
        prompt(RUN, "Run a plan", "Work through a plan to its end", plan()),
        prompt(
            RESUME,
            "Resume a plan",
            "Go on where another session stopped",
            plan(),
        ),
        prompt(
            DESIGN,
            "Design a plan",
            "Turn a question into a plan, and store it",
            question,
        ),
    ])
}

pub(super) async fn get(
    engine: &Engine,
    caller: &Caller,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|all| all.get(name));
        let value = value.and_then(|value| value.as_str()).map(str::trim);
        value
            .filter(|value| !value.is_empty())
            .ok_or_else(|| ErrorData::invalid_params(format!("`{name}` is missing"), None))
    };
    let text = match request.name.as_str() {
        RUN => run(&named(engine, caller, argument("planId")?).await?),
        RESUME => resume(&named(engine, caller, argument("planId")?).await?),
        DESIGN => design(argument("question")?),
        other => {
            let other: String = other.chars().take(100).collect();
            let message = format!("unknown prompt `{other}`");
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]))
}

/// A plan that is there.
struct Plan {
    id: String,
    name: String,
}

async fn named(engine: &Engine, caller: &Caller, id: &str) -> Result<Plan, ErrorData> {
    let missing = |_| {
        error(onward_engine::Error::PlanNotFound(
            id.chars().take(100).collect(),
        ))
    };
    let plan = id.parse().map_err(missing)?;
    let sheet = engine.sheet(caller, plan).await.map_err(error)?;
    Ok(Plan {
        id: plan.to_string(),
        name: sheet.brief.name.replace(['\n', '\r'], " "),
    })
}

/// What is done with each step, whatever came before.
const LOOP: &str = "Do what its `instructions` say, all of it, before you go on. While it takes \
    long, call `report_step_progress` every few minutes. Then call `submit_step_result` with the \
    step's `claimToken`, what you found in `resultSummary`, data in `result`, how sure you are in \
    `confidence`, and `claimNext: true`; its `nextStep` is what you do next. When a step needs a \
    person, call `request_user_review` and tell me. When what you learn asks for other steps, call \
    `modify_plan`. Stop when the status is `plan_complete`: then write the output as its formatting \
    notes ask, and show it to me. Stop also at `plan_failed` and `awaiting_review`, and tell me why.";

fn run(Plan { id, name }: &Plan) -> String {
    format!(
        "Work through the plan \"{name}\" to its end. Call `get_next_step` with planId `{id}`. {LOOP}"
    )
}

fn resume(Plan { id, name }: &Plan) -> String {
    format!(
        "Go on with the plan \"{name}\", which another session began. First call \
         `get_research_context` with planId `{id}`, and read what is done: do not do it again. Then call `get_next_step` \
         with planId `{id}` and `includeStalled: true`, so that a step which the other session left \
         behind comes first; look for what it may have done already. {LOOP}"
    )
}

fn design(question: &str) -> String {
    format!(
        "Design a plan for this, and store it with `create_research_plan`:\n\n{question}\n\nCut it \
         into steps that one agent can do in one go, each with `instructions` that can be followed \
         without anything else: what to do, with what, and what its result must hold. Give steps a \
         `stepType`; use `dependsOn` only where a step cannot begin without another. Put a `critique` \
         step before the last `synthesize`. Where the way depends on what is found, add \
         `branchingConditions`, such as `confidence < 0.5` with `add_steps`. Show me the plan before \
         you begin with it."
    )
}
