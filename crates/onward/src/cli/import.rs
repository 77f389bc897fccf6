//! `onward import`: imports a plan that `onward export` wrote. Its ids stay the same.

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
use crate::output::format;
use crate::output::status::plan_label;

/// Import a plan that `onward export` wrote
///
/// The plan keeps its ids, its audit trail and its state. Prints the id of the plan.
#[derive(Args)]
pub(crate) struct Import {
    /// File with the exported plan; `-` for standard input
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
        .map_err(|error| import_failure(error, &args.file))?;
    let sheet = engine.sheet(&caller, plan).await?;
    let status = sheet.head.status();
    let name = format::sanitize_line(&sheet.brief.name);
    cx.output
        .note(&format!("`{name}` imported: {}", plan_label(status)));
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
    let text = text.map_err(|error| {
        let missing = error.kind() == std::io::ErrorKind::NotFound;
        Failure::new(
            if missing {
                Exit::NotFound
            } else {
                Exit::Failed
            },
            onward_core::Code::InvalidInput,
            format!("cannot read {}: {error}", describe(path)),
            "check the path and the file's permissions",
        )
    })?;
    serde_json::from_slice(&text).map_err(|error| {
        Failure::failed(
            format!("{} is not JSON: {error}", describe(path)),
            "use a file written by `onward export` without `--markdown`",
        )
    })
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn describe(path: &Path) -> String {
    if is_stdin(path) {
        "standard input".to_owned()
    } else {
        format!("`{}`", path.display())
    }
}

/// An invalid document is a failed command, not one rejected by a rule.
fn import_failure(error: Error, path: &Path) -> Failure {
    let is_invalid = matches!(
        &error,
        Error::Rejected {
            refusal: Refusal::InvalidInput(_),
            ..
        }
    );
    let failure = Failure::from(error);
    if !is_invalid {
        return failure;
    }
    Failure {
        exit: Exit::Failed,
        message: format!(
            "{} is not a valid export: {}",
            describe(path),
            failure.message
        ),
        hint: "use an unmodified file written by `onward export`".to_owned(),
        ..failure
    }
}
