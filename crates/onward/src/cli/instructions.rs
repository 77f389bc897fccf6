//! `onward instructions`: prints the text of the skill, for agents without skills.

use clap::Args;

use crate::exit::Exit;
use crate::failure::Result;
use crate::instructions;
use crate::output::Output;

/// Print the instructions for agents: when to use plans, the loop, resuming, reviews
///
/// The same text is the skill that `onward install` writes, and a prompt and a resource of the MCP
/// server.
#[derive(Args)]
pub(crate) struct Instructions {}

pub(super) fn run(output: Output) -> Result {
    if output.json {
        let text = instructions::text();
        output.print_json(&serde_json::json!({ "text": text }))?;
    } else {
        output.print(instructions::text())?;
    }
    Ok(Exit::Done)
}
