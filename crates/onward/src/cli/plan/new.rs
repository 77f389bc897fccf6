//! `onward plan new`: write a plan by answering questions in the terminal.

use std::path::{Path, PathBuf};

use clap::Args;
use onward_core::StepType;
use serde_json::{Map, Value};

use super::definition::Definition;
use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{confirm, prompt};
use crate::plan_file::{self, PlanFile};

/// Write a plan by answering questions
///
/// Asks for the name, the question and the steps, shows the plan and creates it. For branches and
/// other fields, save the answers to a file with `--save` and edit it.
#[derive(Args)]
pub(crate) struct New {
    /// Write the plan to a new file instead of creating it
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

pub(super) async fn run(args: &New, cx: &Context) -> Result {
    let definition = Definition::from_answers(PlanFile::from_arguments(ask_for_plan()?));
    cx.output.note(&format!("\n{}", definition.describe(cx)?));
    if let Some(path) = &args.save {
        save(path, &plan_file::to_markdown(&definition.file.arguments))?;
        cx.output.note(&format!(
            "saved; create the plan with `onward plan create {}`",
            path.display()
        ));
        return Ok(Exit::Done);
    }
    if confirm("create this plan?") == Some(true) {
        definition.create(cx).await
    } else {
        cx.output.note("nothing created");
        Ok(Exit::Failed)
    }
}

fn ask_for_plan() -> Result<Map<String, Value>> {
    let mut plan = Map::new();
    plan.insert("name".to_owned(), required("name")?.into());
    let question = required("question or goal")?;
    plan.insert("researchQuestion".to_owned(), question.into());
    let mut steps: Vec<Value> = Vec::new();
    loop {
        let order = steps.len() + 1;
        let title = ask(&format!("step {order}, title (empty to finish)"))?;
        if title.is_empty() && !steps.is_empty() {
            break;
        }
        if !title.is_empty() {
            steps.push(ask_for_step(title, order)?.into());
        }
    }
    plan.insert("steps".to_owned(), steps.into());
    Ok(plan)
}

fn ask_for_step(title: String, order: usize) -> Result<Map<String, Value>> {
    let types: Vec<&str> = StepType::ALL.iter().map(|kind| kind.as_str()).collect();
    let step_type = loop {
        let answer = ask(&format!("  type ({}) [custom]", types.join(", ")))?;
        let answer = answer.to_lowercase();
        if answer.is_empty() {
            break "custom".to_owned();
        }
        if types.contains(&answer.as_str()) {
            break answer;
        }
    };
    let mut instructions = required("  instructions (several lines; empty line to finish)")?;
    loop {
        let line = ask("  ")?;
        if line.is_empty() {
            break;
        }
        instructions.push('\n');
        instructions.push_str(&line);
    }
    let mut step = Map::new();
    if order > 1 {
        let needed = loop {
            let answer = ask("  depends on the steps (such as `1, 2`) [none]")?;
            let words = answer.split([',', ' ']).filter(|word| !word.is_empty());
            let orders: Option<Vec<usize>> = words
                .map(|word| {
                    word.parse()
                        .ok()
                        .filter(|needed| (1..order).contains(needed))
                })
                .collect();
            if let Some(orders) = orders {
                break orders;
            }
        };
        if !needed.is_empty() {
            step.insert("dependsOn".to_owned(), needed.into());
        }
    }
    step.insert("title".to_owned(), title.into());
    step.insert("stepType".to_owned(), step_type.into());
    step.insert("instructions".to_owned(), instructions.into());
    Ok(step)
}

/// An answer that is not empty.
fn required(question: &str) -> Result<String> {
    loop {
        let answer = ask(question)?;
        if !answer.is_empty() {
            return Ok(answer);
        }
    }
}

fn ask(question: &str) -> Result<String> {
    let separator = if question.trim().is_empty() { "" } else { ": " };
    prompt(&format!("{question}{separator}")).ok_or_else(|| {
        Failure::usage(
            "cannot ask for the plan: standard input is not a terminal, or it ended",
            "write the plan to a file and run `onward plan create FILE`",
        )
    })
}

/// Writes a new file.
fn save(path: &Path, text: &str) -> Result<()> {
    let file = std::fs::File::create_new(path);
    let written = file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    written.map_err(|error| {
        Failure::failed(
            format!("cannot write `{}`: {error}", path.display()),
            "use the path of a new file in an existing directory",
        )
    })
}
