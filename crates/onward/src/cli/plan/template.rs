//! `onward plan template`: plan files of the project and of the user.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use onward_core::Code;
use serde::Serialize;

use super::definition::Definition;
use crate::cli::Context;
use crate::cli::suggestion::nearest;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::format;
use crate::output::table::{Cell, Table};
use crate::plan_template::{self, PROJECT_DIRECTORY, Template};

#[derive(Subcommand)]
pub(crate) enum Command {
    List(List),
    Show(Show),
    Use(Use),
}

/// List the plan templates of this project and of the user
///
/// Templates are plan files: `.onward/plans/NAME.md` in the project, and
/// `$XDG_CONFIG_HOME/onward/plans/NAME.md`. A template of the project hides the user's template of
/// the same name.
#[derive(Args)]
pub(crate) struct List {}

/// Show the plan that a template creates
///
/// Checks the template and prints its steps; with `--json`, the arguments of `create_research_plan`.
#[derive(Args)]
pub(crate) struct Show {
    /// Name of the template
    #[arg(value_name = "NAME")]
    name: String,
}

/// Create a plan from a template
///
/// Prints the id of the plan.
#[derive(Args)]
pub(crate) struct Use {
    /// Name of the template
    #[arg(value_name = "NAME")]
    template: String,
    /// Name of the plan, instead of the template's
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Question or goal of the plan, instead of the template's
    #[arg(long, value_name = "TEXT")]
    question: Option<String>,
    /// Check the plan and show it, without creating it; needs no database
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Listed {
    templates: Vec<ListedTemplate>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedTemplate {
    template: String,
    scope: &'static str,
    path: String,
    /// The name of the plan; missing if the file is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_count: Option<usize>,
    /// Why the file is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) async fn run(command: &Command, cx: &Context) -> Result {
    match command {
        Command::List(List {}) => list(cx),
        Command::Show(args) => read(&args.name)?.show(cx),
        Command::Use(args) => {
            let mut definition = read(&args.template)?;
            if let Some(name) = &args.name {
                definition.file.set("name", name.as_str());
            }
            if let Some(question) = &args.question {
                definition.file.set("researchQuestion", question.as_str());
            }
            if args.dry_run {
                definition.show(cx)
            } else {
                definition.create(cx).await
            }
        }
    }
}

fn list(cx: &Context) -> Result {
    let templates: Vec<ListedTemplate> = plan_template::list(&directory()?)
        .iter()
        .map(listed)
        .collect();
    if cx.output.json {
        cx.output.print_json(&Listed { templates })?;
        return Ok(Exit::Done);
    }
    if templates.is_empty() {
        cx.output.note(&format!(
            "no templates; add a plan file as `{PROJECT_DIRECTORY}/NAME.md`"
        ));
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["TEMPLATE", "SCOPE", "STEPS", "PLAN"]);
    for template in templates {
        let steps = template
            .step_count
            .map_or(String::new(), |count| count.to_string());
        let plan = template
            .name
            .or_else(|| Some(format!("invalid: {}", template.error?)));
        table.row([
            template.template.into(),
            template.scope.into(),
            Cell::number(steps),
            Cell::summary(plan.unwrap_or_default()),
        ]);
    }
    cx.output.print(&table.render(cx.output, ""))?;
    Ok(Exit::Done)
}

fn listed(template: &Template) -> ListedTemplate {
    let checked = Definition::read(&template.path).and_then(|definition| definition.check());
    let (plan, error) = match checked {
        Ok(plan) => (Some(plan), None),
        Err(failure) => (None, Some(format::sanitize_line(&failure.message))),
    };
    ListedTemplate {
        template: template.name.clone(),
        scope: template.scope.as_str(),
        path: template.path.display().to_string(),
        step_count: plan.as_ref().map(|plan| plan.steps.len()),
        name: plan.map(|plan| plan.name),
        error,
    }
}

fn read(name: &str) -> Result<Definition> {
    let templates = plan_template::list(&directory()?);
    if let Some(template) = templates.iter().find(|template| template.name == name) {
        return Definition::read(&template.path);
    }
    let names: Vec<&str> = templates
        .iter()
        .map(|template| template.name.as_str())
        .collect();
    let hint = match nearest(name, &names) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "list the templates with `onward plan template list`".to_owned(),
    };
    Err(Failure::new(
        Exit::NotFound,
        Code::InvalidInput,
        format!("template `{name}` not found"),
        hint,
    ))
}

fn directory() -> Result<PathBuf> {
    std::env::current_dir().map_err(|error| {
        Failure::failed(
            format!("cannot read the current directory: {error}"),
            "change to an existing directory",
        )
    })
}
