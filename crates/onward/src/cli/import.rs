//! `onward import`: imports plans that `onward export` or the dashboard wrote. Their ids stay the
//! same. A file can contain several documents.

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

/// Import plans that `onward export` or the dashboard wrote
///
/// A plan keeps its ids, its audit trail and its state. Prints the id of each plan. A file with
/// several plans has one JSON document per line; the import stops at the first invalid one.
#[derive(Args)]
pub(crate) struct Import {
    /// File with the exported plans; `-` for standard input
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
    let documents = read(&args.file)?;
    let Database { engine, caller, .. } = Database::open_or_create(cx).await?;
    for document in &documents {
        let plan = engine
            .import(&caller, document)
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
    }
    Ok(Exit::Done)
}

/// The documents of a file; at least one.
fn read(path: &Path) -> Result<Vec<Value>> {
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
    let invalid = |error: String| {
        Failure::failed(
            format!("{} is not JSON: {error}", describe(path)),
            "use a file written by `onward export` without `--markdown`",
        )
    };
    let documents = serde_json::Deserializer::from_slice(&text).into_iter();
    let documents: Vec<Value> = documents
        .collect::<serde_json::Result<_>>()
        .map_err(|error| invalid(error.to_string()))?;
    if documents.is_empty() {
        return Err(invalid("no document found".to_owned()));
    }
    Ok(documents)
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
