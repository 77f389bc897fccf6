//! `onward plan create`: create a plan from a file.

use std::path::PathBuf;

use clap::Args;

use super::definition::Definition;
use crate::cli::Context;
use crate::failure::Result;

const EXAMPLE: &str = "\
Example file:

  +++
  onStall = \"requeue\"

  [[branchingConditions]]
  afterStepOrder = 1
  conditionExpression = \"result.failures == 0\"
  ifTrueAction = \"skip_to\"
  actionParams = { targetStepOrder = 3 }
  +++

  # Name of the plan

  The question to answer, or the goal.

  ## Title of step 1

  ```toml
  stepType = \"search\"
  ```

  Instructions for the agent. Without `stepType`, a step is `custom`.

  ## Title of step 2

  More instructions.

  ## Title of step 3

  ```toml
  dependsOn = [1, 2]
  ```

  The last instructions.";

/// Create a plan from a Markdown or JSON file
///
/// The fields are those of the tool `create_research_plan`. In Markdown, TOML between `+++` lines
/// has the fields of the plan, each `##` heading is a step, and a `toml` block below the heading
/// has the other fields of the step. A JSON file has the arguments of the tool. Prints the id of
/// the plan.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Create {
    /// File with the plan; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Check the file and show the plan, without creating it; needs no database
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(args: &Create, cx: &Context) -> Result {
    let definition = Definition::read(&args.file)?;
    if args.dry_run {
        definition.show(cx)
    } else {
        definition.create(cx).await
    }
}
