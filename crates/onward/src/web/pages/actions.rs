//! Form handlers that change plans: snooze, cancel, fork, add a step, and move, release, fail, skip,
//! redo or edit one.
//! Each redirects back to the page with the form.

use axum::extract::Path;
use onward_core::budget::{Budget, Limit};
use onward_core::command::{ForkPlan, Modification, ModifyPlan, StepSpec, StepUpdate};
use onward_core::policy::OnDependencyFailure;
use onward_core::{Code, PlanId, StepId, StepType};
use onward_engine::Error;
use onward_engine::status::MAX_LISTED;
use serde_json::{Map, Value};

use super::plan::{MINUTE_MS, find_plan, orders_field};
use super::{Fields, FormPost, PageError, PageResult, Visit, redirect, run_to_completion};
use crate::tools::modify_plan;
use crate::web::problem::Problem;

/// Maximum number of plans that are changed or exported together.
pub(super) const MAX_SELECTED: usize = 100;

pub(super) async fn resume(Path(id): Path<String>, post: FormPost) -> PageResult {
    let visit = post.visit;
    let plan = find_plan(&visit, &id).await?;
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    run_to_completion(async move { engine.resume_plan(&caller, plan).await }).await?;
    Ok(redirect(&format!("/plans/{plan}?done=snoozed")))
}

pub(super) async fn abandon(Path(id): Path<String>, post: FormPost) -> PageResult {
    let visit = post.visit;
    let plan = find_plan(&visit, &id).await?;
    let reason = post.fields.get("reason").map(str::to_owned);
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    run_to_completion(async move { engine.abandon_plan(&caller, plan, reason).await }).await?;
    Ok(redirect(&format!("/plans/{plan}?done=cancelled")))
}

pub(super) async fn requeue(Path(path): Path<(String, String)>, post: FormPost) -> PageResult {
    let change = |step, _: &FormPost| Modification::RequeueStep { step };
    modify(path, post, change, "released").await
}

pub(super) async fn fail(Path(path): Path<(String, String)>, post: FormPost) -> PageResult {
    let change = |step, post: &FormPost| Modification::FailStep {
        step,
        reason: post.fields.get("reason").map(str::to_owned),
    };
    modify(path, post, change, "step_failed").await
}

/// Skips a pending or failed step.
pub(super) async fn skip(Path(path): Path<(String, String)>, post: FormPost) -> PageResult {
    let change = |step, _: &FormPost| Modification::SkipStep { step };
    modify(path, post, change, "step_skipped").await
}

/// Lets a step start although steps that it depends on have failed.
pub(super) async fn proceed(Path(path): Path<(String, String)>, post: FormPost) -> PageResult {
    let change = |step, _: &FormPost| Modification::UpdateStep {
        step,
        update: StepUpdate {
            on_dependency_failure: Some(OnDependencyFailure::Continue),
            ..StepUpdate::default()
        },
    };
    modify(path, post, change, "step_continues").await
}

pub(super) async fn redo(Path(path): Path<(String, String)>, post: FormPost) -> PageResult {
    let change = |step, post: &FormPost| Modification::RedoStep {
        step,
        reason: post.fields.get("reason").unwrap_or_default().to_owned(),
        cascade: post.fields.get("cascade").is_some(),
        ids: Vec::new(),
    };
    modify(path, post, change, "redone").await
}

/// Creates a plan that takes over the results before a step.
pub(super) async fn fork(Path((plan, step)): Path<(String, String)>, post: FormPost) -> PageResult {
    let visit = post.visit;
    let plan = find_plan(&visit, &plan).await?;
    let step = find_step(&visit, &step).await?;
    let (_, step) = visit.site.engine.step(&visit.caller, step).await?;
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    let command = ForkPlan {
        plan: engine.new_plan_id(),
        from_order: step.order,
        name: None,
        research_question: None,
        design_rationale: None,
        session: None,
        approval: None,
    };
    let forked =
        run_to_completion(async move { engine.fork_plan(&caller, plan, command, None).await });
    let forked = forked.await?;
    Ok(redirect(&format!(
        "/plans/{}?done=forked",
        forked.created.plan
    )))
}

/// Changes the instructions of a step. The form of a pending step has its other fields, too.
pub(super) async fn edit(Path(path): Path<(String, String)>, post: FormPost) -> PageResult {
    let update = if post.fields.get("stepType").is_some() {
        modify_plan::step_update(edited(&post.fields)).map_err(Error::from)?
    } else {
        StepUpdate {
            instructions: Some(instructions(&post.fields)),
            ..StepUpdate::default()
        }
    };
    let change = |step, _: &FormPost| modify_plan::of_step(step, update);
    modify(path, post, change, "edited").await
}

/// Changes the project, the labels and the priority of a plan.
pub(super) async fn edit_plan(Path(id): Path<String>, post: FormPost) -> PageResult {
    let FormPost { visit, fields } = post;
    let plan = find_plan(&visit, &id).await?;
    let text = |name: &str| fields.get(name).unwrap_or_default();
    let mut values = Map::new();
    values.insert("projectKey".to_owned(), text("projectKey").into());
    values.insert("labels".to_owned(), words(text("labels")));
    if !text("priority").is_empty() {
        values.insert("priority".to_owned(), number(text("priority")));
    }
    let update = modify_plan::plan_update(values).map_err(Error::from)?;
    let change = by_user(Modification::UpdatePlan { update });
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    run_to_completion(async move { engine.modify_plan(&caller, plan, change).await }).await?;
    Ok(redirect(&format!("/plans/{plan}?tab=about&done=saved")))
}

/// Sets the limits of the budget. Empty fields set none; without any, the plan has no budget.
pub(super) async fn set_budget(Path(id): Path<String>, post: FormPost) -> PageResult {
    let FormPost { visit, fields } = post;
    let plan = find_plan(&visit, &id).await?;
    let mut limits = Budget::default();
    for limit in Limit::ALL {
        let text = fields.get(limit.as_str()).unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let max: u64 = text.parse().map_err(|_| {
            let message = format!("invalid `budget.{limit}`: `{text}` is not a number");
            invalid_input(message, "go back and enter a number from 1, or nothing")
        })?;
        let unit = if limit == Limit::Duration { 60_000 } else { 1 };
        limits.set(limit, Some(max.saturating_mul(unit)));
    }
    let change = ModifyPlan::new(Modification::SetBudget {
        budget: (limits != Budget::default()).then_some(limits),
        by_person: true,
    });
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    run_to_completion(async move { engine.modify_plan(&caller, plan, change).await }).await?;
    Ok(redirect(&format!("/plans/{plan}?tab=about&done=saved")))
}

/// A list of words, separated by commas.
fn words(text: &str) -> Value {
    let words = text.split(',').map(str::trim);
    words
        .filter(|word| !word.is_empty())
        .map(Value::from)
        .collect()
}

/// The schema of the tool rejects a text that is not a number.
fn number(text: &str) -> Value {
    text.parse::<u64>()
        .map_or_else(|_| text.into(), Value::from)
}

/// A number without a fraction. The schema of the tool rejects what is not in range.
fn whole(number: f64) -> Value {
    format!("{number:.0}")
        .parse::<i64>()
        .map_or(Value::Null, Value::from)
}

/// The fields of the tool from the form of a pending step. Values that are not numbers or JSON are
/// sent as texts, which the schema of the tool rejects.
fn edited(fields: &Fields) -> Map<String, Value> {
    let text = |name: &str| fields.get(name).unwrap_or_default().trim();
    let lines = |name: &str| -> Value {
        let lines = text(name).lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty())
            .map(Value::from)
            .collect()
    };
    let orders = text("dependsOn").split([',', ' ']);
    let orders = orders.filter(|word| !word.is_empty()).map(number);
    let minutes = match text("stallMinutes") {
        "" => 0.into(),
        minutes => match minutes.parse::<f64>() {
            Ok(minutes) => whole(minutes * MINUTE_MS),
            Err(_) => minutes.into(),
        },
    };
    let schema = match text("resultSchema") {
        "" => Map::new().into(),
        schema => serde_json::from_str(schema).unwrap_or_else(|_| schema.into()),
    };
    let mut edited = Map::new();
    let mut set = |name: &str, value: Value| edited.insert(name.to_owned(), value);
    set("instructions", instructions(fields).into());
    set("title", text("title").into());
    set("stepType", text("stepType").into());
    set("dependsOn", orders.collect());
    set("stallThresholdMs", minutes);
    set("acceptanceCriteria", lines("acceptanceCriteria"));
    set("resultSchema", schema);
    set("labels", words(text("labels")));
    if !text("priority").is_empty() {
        set("priority", number(text("priority")));
    }
    let reviewer = text("reviewBy");
    set("reviewRequired", (!reviewer.is_empty()).into());
    if !reviewer.is_empty() {
        set("reviewBy", reviewer.into());
    }
    edited
}

/// The instructions field. Browsers send CRLF line breaks.
fn instructions(fields: &Fields) -> String {
    let text = fields.get("instructions").unwrap_or_default();
    text.replace("\r\n", "\n")
}

/// Adds a step after the given step number, or at the end.
pub(super) async fn add(Path(id): Path<String>, post: FormPost) -> PageResult {
    let FormPost { visit, fields } = post;
    let plan = find_plan(&visit, &id).await?;
    let name = fields.get("type").unwrap_or_default();
    let kind: StepType = name.parse().map_err(|_| {
        let message = format!("invalid step type `{name}`");
        invalid_input(message, "go back and select a type from the list")
    })?;
    let after = fields.get("after");
    let after = after.map(|number| number.parse().map_err(|_| no_such_step(number)));
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    let mut step = StepSpec::new(engine.new_step_id(), kind, instructions(&fields));
    step.title = fields.get("title").map(str::to_owned);
    let change = Modification::AddSteps {
        steps: vec![step],
        insert_after: after.transpose()?,
    };
    let added =
        run_to_completion(async move { engine.modify_plan(&caller, plan, by_user(change)).await });
    added.await.map_err(|error| {
        let is_reference = error.0.code() == Code::InvalidStepReference;
        match fields.get("after").filter(|_| is_reference) {
            Some(number) => no_such_step(number).into(),
            None => error,
        }
    })?;
    Ok(redirect(&format!("/plans/{plan}?done=added")))
}

/// Moves a step to another position.
pub(super) async fn move_to(
    Path((plan, step)): Path<(String, String)>,
    post: FormPost,
) -> PageResult {
    let FormPost { visit, fields } = post;
    let plan = find_plan(&visit, &plan).await?;
    let step = find_step(&visit, &step).await?;
    let position = fields.get("position").unwrap_or_default();
    let position: u32 = position.parse().map_err(|_| {
        let message = format!("invalid position `{position}`");
        invalid_input(message, "go back and enter a number from 1")
    })?;
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    run_to_completion(async move { engine.move_step(&caller, plan, step, position).await }).await?;
    Ok(redirect(&match fields.get("back") {
        Some("step") => format!("/plans/{plan}/steps/{step}?done=moved"),
        // Stay in reorder mode, on the same page of the list.
        Some(_) | None => format!(
            "/plans/{plan}?reorder=1&after={}#step-{step}",
            fields.parsed("after").unwrap_or(0u32)
        ),
    }))
}

fn no_such_step(number: &str) -> Problem {
    let message = format!("the plan has no step {number}");
    invalid_input(
        message,
        "go back and enter the number of a step, or 0 for the beginning",
    )
}

fn invalid_input(message: String, hint: &'static str) -> Problem {
    Problem::new(Code::InvalidInput, message, hint)
}

/// A user's change also resumes a stalled plan.
fn by_user(change: Modification) -> ModifyPlan {
    ModifyPlan {
        resume: true,
        ..ModifyPlan::new(change)
    }
}

/// Modifies a step. This also clears the stalled status of the plan.
async fn modify(
    (plan, step): (String, String),
    post: FormPost,
    change: impl FnOnce(StepId, &FormPost) -> Modification,
    outcome: &str,
) -> PageResult {
    let plan = find_plan(&post.visit, &plan).await?;
    let step = find_step(&post.visit, &step).await?;
    let change = change(step, &post);
    let visit = post.visit;
    let (_, found) = visit.site.engine.step(&visit.caller, step).await?;
    let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
    run_to_completion(async move { engine.modify_plan(&caller, plan, by_user(change)).await })
        .await?;
    let back = match post.fields.get("back") {
        Some("step") => format!("/plans/{plan}/steps/{step}"),
        Some(_) | None => format!("/plans/{plan}"),
    };
    Ok(redirect(&format!(
        "{back}?done={outcome}&steps={}",
        found.order
    )))
}

/// Releases all stuck steps of a plan.
pub(super) async fn release(Path(id): Path<String>, post: FormPost) -> PageResult {
    let visit = post.visit;
    let plan = find_plan(&visit, &id).await?;
    let released = change_stuck(&visit, plan, |step| Modification::RequeueStep { step }).await?;
    let steps = orders_field(&released);
    Ok(redirect(&format!(
        "/plans/{plan}?done=released&steps={steps}"
    )))
}

/// Fails all stuck steps of a plan.
pub(super) async fn fail_stuck(Path(id): Path<String>, post: FormPost) -> PageResult {
    let FormPost { visit, fields } = post;
    let plan = find_plan(&visit, &id).await?;
    let reason = fields.get("reason").map(str::to_owned);
    let fail = |step| Modification::FailStep {
        step,
        reason: reason.clone(),
    };
    let failed = change_stuck(&visit, plan, fail).await?;
    let steps = orders_field(&failed);
    Ok(redirect(&format!(
        "/plans/{plan}?done=step_failed&steps={steps}"
    )))
}

/// Releases the stuck steps of the selected plans, or cancels the plans.
pub(super) async fn selected(post: FormPost) -> PageResult {
    let FormPost { visit, fields } = post;
    let mut changed = 0;
    if fields.get("plan").is_none() {
        return Ok(redirect("/plans?done=none_selected"));
    }
    let cancels = fields.get("action") == Some("cancel");
    for id in fields.all("plan").take(MAX_SELECTED) {
        let plan = find_plan(&visit, id).await?;
        if cancels {
            let (engine, caller) = (visit.site.engine.clone(), visit.caller.clone());
            run_to_completion(async move { engine.abandon_plan(&caller, plan, None).await })
                .await?;
            changed += 1;
        } else {
            let release = |step| Modification::RequeueStep { step };
            changed += change_stuck(&visit, plan, release).await?.len();
        }
    }
    if fields.get("page") == Some("overview") {
        return Ok(redirect("/"));
    }
    let done = if cancels { "cancelled" } else { "released" };
    Ok(redirect(&format!(
        "/plans?done=many_{done}&count={changed}"
    )))
}

/// Changes the stuck steps of a plan, and returns their orders. Steps that are not stuck any more
/// are skipped.
async fn change_stuck(
    visit: &Visit,
    plan: PlanId,
    change: impl Fn(StepId) -> Modification,
) -> Result<Vec<u32>, PageError> {
    let engine = &visit.site.engine;
    let mut orders = Vec::new();
    loop {
        let stalled = engine.status(&visit.caller, plan, None).await?.stalled;
        let full = stalled.len() >= usize::try_from(MAX_LISTED).unwrap_or(usize::MAX);
        for stalled in stalled {
            let change = by_user(change(stalled.step));
            let (engine, caller) = (engine.clone(), visit.caller.clone());
            run_to_completion(async move { engine.modify_plan(&caller, plan, change).await })
                .await?;
            orders.push(stalled.order);
        }
        if !full {
            return Ok(orders);
        }
    }
}

/// The step with the id in the URL.
pub(super) async fn find_step(visit: &Visit, id: &str) -> Result<StepId, PageError> {
    Ok(visit.site.engine.find_step(&visit.caller, id).await?)
}
