//! Onward's one binary: it speaks with people and agents, and leaves the doing to
//! `onward-engine`.
//!
//! Nothing is decided here, and no database is touched: this crate may not even depend on
//! `onward-store`. What the command line accepts stands in `cli`, how it speaks in `output`, how
//! a run can end in `exit`; `tools` is what agents and programs ask for, `web` carries it over HTTP;
//! `model` asks the models that are configured;
//! `transcript` reads what agents have saved, `hooks` what they tell while they run, and `fingerprint`
//! looks at the working tree meanwhile; `proxy` stands between them and their models. `notify` tells
//! people what was found when nobody looks.

mod cli;
mod config;
mod exit;
mod extraction;
mod failure;
mod fingerprint;
mod hooks;
mod install;
mod markdown;
mod mcp;
mod model;
mod notify;
mod output;
mod proxy;
mod telemetry;
mod tools;
mod transcript;
mod web;
mod wire;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run().into()
}
