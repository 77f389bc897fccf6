//! `onward transcript`: what can be done with a saved session.
//!
//! How sessions are read stands in `crate::transcript`, one file per format.

mod judge;

use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

#[derive(Subcommand)]
pub(crate) enum Command {
    Judge(judge::Judge),
}

pub(super) fn run(command: &Command, output: Output) -> Exit {
    match command {
        Command::Judge(judge) => judge::run(judge, output),
    }
}
