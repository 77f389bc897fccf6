//! `onward completions`: shell completions of commands and flags.

use clap::Args;
use clap_complete::Shell;

use super::help;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::Output;

/// Print completions for a shell
///
/// Example for bash: `onward completions bash > ~/.local/share/bash-completion/completions/onward`
#[derive(Args)]
pub(crate) struct Completions {
    /// Shell that the completions are for
    shell: Shell,
}

pub(super) fn run(args: &Completions, output: Output) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut help::command(), "onward", &mut script);
    output.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
