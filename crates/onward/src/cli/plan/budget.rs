//! `onward plan budget`: show, set, change or remove the budget of a plan.

use std::time::Duration;

use clap::Args;
use onward_core::budget::{Budget as Limits, Limit};
use onward_core::command::{Modification, ModifyPlan};

use crate::cli::Context;
use crate::cli::database::Database;
use crate::cli::token::parse_duration;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::{budget, format};
use crate::wire::modified::ModifiedPlan;

/// Show or change the budget of a plan
///
/// When a limit is reached, no further step is assigned until you raise it. Steps in progress continue.
/// Limits that are not set stay. Without options, prints the budget.
#[derive(Args)]
pub(crate) struct Budget {
    /// Plan: id, unique prefix of the id, or words of its name
    #[arg(value_name = "PLAN")]
    id: String,
    /// Different steps that may be assigned
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,
    /// Claims of all steps
    #[arg(long, value_name = "N")]
    max_attempts: Option<u64>,
    /// Time since the first claim, for example `2h`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    max_duration: Option<Duration>,
    /// Tokens of the sessions while they work on the steps
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// Remove the budget
    #[arg(long, conflicts_with_all = ["max_steps", "max_attempts", "max_duration", "max_tokens"])]
    remove: bool,
}

impl Budget {
    /// The options that are set.
    fn changes(&self) -> [(Limit, Option<u64>); 4] {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        [
            (Limit::Steps, self.max_steps),
            (Limit::Attempts, self.max_attempts),
            (Limit::Duration, self.max_duration.map(millis)),
            (Limit::Tokens, self.max_tokens),
        ]
    }
}

pub(super) async fn run(args: &Budget, cx: &Context) -> Result {
    let database = Database::open(cx).await?;
    let Database { engine, caller, .. } = &database;
    let plan = database.find_plan(&args.id).await?;
    let sheet = engine.sheet(caller, plan).await?;
    let changes = args.changes();
    let is_changed = args.remove || changes.iter().any(|(_, max)| max.is_some());
    let head = if is_changed {
        let mut limits = sheet
            .head
            .budget
            .map_or_else(Limits::default, |old| old.limits);
        for (limit, max) in changes.iter().filter(|(_, max)| max.is_some()) {
            limits.set(*limit, *max);
        }
        let command = ModifyPlan::new(Modification::SetBudget {
            budget: (!args.remove).then_some(limits),
            by_person: true,
        });
        let modified = engine.modify_plan(caller, plan, command).await?;
        if cx.output.json {
            cx.output
                .print_json(&ModifiedPlan::new("set_budget", &modified))?;
            return Ok(Exit::Done);
        }
        modified.head
    } else if cx.output.json {
        let status = engine.status(caller, plan, None).await?;
        cx.output
            .print_json(&crate::wire::plan::PlanDetails::new(&status))?;
        return Ok(Exit::Done);
    } else {
        sheet.head
    };
    let name = format::sanitize_line(&sheet.brief.name);
    let text = match &head.budget {
        Some(state) => budget::use_text(state, sheet.tokens, database.now),
        None => "no budget".to_owned(),
    };
    cx.output.print(&format!("{name}: {text}\n"))?;
    if let Some(exhausted) = head.exhausted(database.now) {
        let exhausted = budget::exhausted_text(&exhausted);
        cx.output.note(&format!(
            "exhausted: {exhausted}; no further step is assigned"
        ));
    }
    Ok(Exit::Done)
}
