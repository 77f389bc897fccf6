//! `/plans/new`: a form that creates a plan.
//!
//! The name of an input is the path of the tool's field that it sets, so a rejected field is
//! displayed next to its input. `inputs.rs` lists the inputs, `entries.rs` has the entered values.
//! Buttons that add or remove a step submit the form, and the page returns with all entered values:
//! no script is needed.

mod entries;
mod inputs;

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use onward_core::role::Permission;
use serde_json::Value;

use super::format::sentence;
use super::layout::{Layout, Section, render};
use super::{FormPost, PageError, PageResult, Visit, redirect};
use crate::plan_file::{FileIssue, PlanFile};
use crate::tools;
use crate::tools::create_research_plan;
use crate::web::problem::Problem;
use entries::{Entries, Group};
use inputs::{INPUTS, Input, Kind};

#[derive(Template)]
#[template(path = "new_plan.html")]
struct NewPlan {
    layout: Layout,
    denied: bool,
    /// Rejected fields: the id of the input, if there is one, and the message.
    errors: Vec<(Option<String>, String)>,
    plan: Part,
    steps: Vec<Part>,
    branches: Vec<Part>,
}

/// The inputs of the plan, a step or a branch.
struct Part {
    main: Vec<Shown>,
    options: Vec<Shown>,
    /// Whether an option has a value or an error.
    is_open: bool,
}

/// An input with its value.
struct Shown {
    path: String,
    label: &'static str,
    hint: &'static str,
    kind: &'static Kind,
    value: String,
    error: Option<String>,
    /// Whether it is the first input of a step or branch that was just added.
    is_focused: bool,
}

impl Shown {
    fn is_text(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Lines | Kind::Json)
    }

    fn is_required(&self) -> bool {
        ["name", "researchQuestion"].contains(&self.path.as_str())
    }

    fn is_checkbox(&self) -> bool {
        *self.kind == Kind::Checkbox
    }

    fn choices(&self) -> Option<&'static [&'static str]> {
        if let Kind::Choice(choices) = self.kind {
            Some(choices.as_ref())
        } else {
            None
        }
    }

    fn has_value(&self, choice: &str) -> bool {
        self.value == choice
    }

    fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Integer | Kind::Minutes)
    }
}

pub(super) async fn show(visit: Visit) -> PageResult {
    page(&visit, &Entries::default(), &[], None).await
}

pub(super) async fn submit(post: FormPost) -> PageResult {
    let FormPost { visit, fields } = post;
    let mut entries = Entries::read(&fields);
    match fields.get("action").unwrap_or_default().split_once(':') {
        Some(("remove_step", index)) => {
            entries.remove_step(index.parse().unwrap_or(usize::MAX));
            return page(&visit, &entries, &[], None).await;
        }
        Some(("remove_branch", index)) => {
            entries.remove_branch(index.parse().unwrap_or(usize::MAX));
            return page(&visit, &entries, &[], None).await;
        }
        Some(("add", group)) => {
            let focus = entries.add(group);
            return page(&visit, &entries, &[], focus).await;
        }
        Some(_) | None => {}
    }
    entries.remove_blank();
    let file = PlanFile::from_arguments(entries.arguments());
    if let Err(invalid) = file.check() {
        let page = page(&visit, &entries, &invalid.issues, None).await?;
        return Ok((StatusCode::BAD_REQUEST, page).into_response());
    }
    let Some(tool) = tools::find(create_research_plan::NAME) else {
        return Err(Problem::route_not_found("/plans/new").into());
    };
    let arguments = Value::Object(file.arguments);
    let created = tools::call(&visit.site.tool_context, &visit.caller, tool, arguments).await;
    let created = created.map_err(Problem::from)?;
    let id = created.get("planId").and_then(Value::as_str);
    Ok(redirect(&format!(
        "/plans/{}?done=created",
        id.unwrap_or_default()
    )))
}

async fn page(
    visit: &Visit,
    entries: &Entries,
    issues: &[FileIssue],
    focus: Option<String>,
) -> Result<Response, PageError> {
    let mut layout = visit.layout("New plan", Section::Plans).await?;
    // An update would replace the entered values.
    layout.live = false;
    let group = |inputs: &'static [Input], path: String, values: &Group| {
        part(inputs, &path, values, issues, focus.as_deref())
    };
    let numbered = |inputs: &'static [Input], name: &str, groups: &[Group]| -> Vec<Part> {
        let parts = groups.iter().enumerate();
        parts
            .map(|(index, values)| group(inputs, format!("{name}[{index}]."), values))
            .collect()
    };
    let page = NewPlan {
        denied: visit.denial(Permission::CreatePlan).is_some(),
        plan: group(&INPUTS.plan, String::new(), &entries.plan),
        steps: numbered(&INPUTS.step, entries::STEPS, &entries.steps),
        branches: numbered(&INPUTS.branch, entries::BRANCHES, &entries.branches),
        errors: errors(entries, issues),
        layout,
    };
    render(&page)
}

/// Whether an issue concerns the input with this path.
fn concerns(issue: &FileIssue, input: &str) -> bool {
    let rest = issue
        .path
        .as_deref()
        .and_then(|path| path.strip_prefix(input));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
}

fn part(
    inputs: &'static [Input],
    prefix: &str,
    values: &Group,
    issues: &[FileIssue],
    focus: Option<&str>,
) -> Part {
    let shown = |input: &'static Input| {
        let path = format!("{prefix}{}", input.field);
        let error = issues.iter().find(|issue| concerns(issue, &path));
        Shown {
            error: error.map(message),
            is_focused: focus == Some(path.as_str()),
            value: values.get(input.field).cloned().unwrap_or_default(),
            label: &input.label,
            hint: &input.hint,
            kind: &input.kind,
            path,
        }
    };
    let (main, options): (Vec<&'static Input>, Vec<&'static Input>) =
        inputs.iter().partition(|input| input.is_main);
    let options: Vec<Shown> = options.into_iter().map(shown).collect();
    let is_set = |input: &Shown| {
        let default = input.choices().and_then(|choices| choices.first());
        let is_default = default.is_some_and(|default| *default == input.value);
        input.error.is_some() || !(input.value.is_empty() || is_default)
    };
    Part {
        is_open: options.iter().any(is_set),
        main: main.into_iter().map(shown).collect(),
        options,
    }
}

/// The message without the path, which the input shows.
fn message(issue: &FileIssue) -> String {
    let path = issue.path.as_deref().unwrap_or_default();
    let prefix = format!("`{path}` ");
    sentence(
        issue
            .message
            .strip_prefix(&prefix)
            .unwrap_or(&issue.message),
    )
}

/// The list of all issues at the top of the page.
fn errors(entries: &Entries, issues: &[FileIssue]) -> Vec<(Option<String>, String)> {
    let paths = entries.paths();
    let error = |issue: &FileIssue| {
        let input = paths.iter().find(|(path, _)| concerns(issue, path));
        match input {
            Some((path, label)) => (Some(path.clone()), format!("{label}: {}", message(issue))),
            None => (None, sentence(&issue.message)),
        }
    };
    issues.iter().map(error).collect()
}

#[cfg(test)]
mod tests;
