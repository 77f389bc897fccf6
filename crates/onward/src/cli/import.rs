//! `onward import`: takes in a plan that `onward export` wrote, under its own ids.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use onward_core::Refusal;
use onward_engine::Error;
use serde::Serialize;
use serde_json::Value;

use super::Context;
use super::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::words;

/// Take in a plan that `onward export` wrote
///
/// The plan keeps its ids and its log, and stands where it stood. Prints its id.
#[derive(Args)]
pub(crate) struct Import {
    /// The document; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Imported {
    plan_id: String,
    name: String,
    status: &'static str,
}

pub(super) async fn run(args: &Import, cx: &Context) -> Result {
    let document = read(&args.file)?;
    let Database { engine, caller, .. } = Database::open(cx).await?;
    let plan = engine
        .import(&caller, &document)
        .await
        .map_err(|why| refused(why, &args.file))?;
    let sheet = engine.sheet(&caller, plan).await?;
    let status = sheet.head.status();
    let name = words::line(&sheet.brief.name);
    cx.output
        .say(&format!("`{name}` is taken in: it is {status}"));
    if cx.output.json {
        cx.output.print_json(&Imported {
            plan_id: plan.to_string(),
            name: sheet.brief.name,
            status: status.as_str(),
        })?;
    } else {
        cx.output.print(&format!("{plan}\n"))?;
    }
    Ok(Exit::Done)
}

fn read(path: &Path) -> Result<Value> {
    let text = if is_stdin(path) {
        let mut text = Vec::new();
        std::io::stdin().lock().read_to_end(&mut text).map(|_| text)
    } else {
        std::fs::read(path)
    };
    let text = text.map_err(|why| {
        let missing = why.kind() == std::io::ErrorKind::NotFound;
        Failure::new(
            if missing {
                Exit::NotFound
            } else {
                Exit::Failed
            },
            onward_core::Code::InvalidInput,
            format!("{} cannot be read: {why}", called(path)),
            "check the path and who may read it",
        )
    })?;
    serde_json::from_slice(&text).map_err(|why| {
        Failure::failed(
            format!("{} is not JSON: {why}", called(path)),
            "give a document that `onward export` wrote, without `--markdown`",
        )
    })
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn called(path: &Path) -> String {
    match is_stdin(path) {
        true => "standard input".to_owned(),
        false => format!("`{}`", path.display()),
    }
}

/// A document that does not fit is a bad file, not a rule that stands in the way.
fn refused(why: Error, path: &Path) -> Failure {
    let misfits = matches!(
        &why,
        Error::Refused {
            refusal: Refusal::InvalidInput(_),
            ..
        }
    );
    let failure = Failure::from(why);
    if !misfits {
        return failure;
    }
    Failure {
        exit: Exit::Failed,
        message: format!(
            "{} is no plan that can be taken in: {}",
            called(path),
            failure.message
        ),
        hint: "give a document that `onward export` wrote, unchanged".to_owned(),
        ..failure
    }
}
