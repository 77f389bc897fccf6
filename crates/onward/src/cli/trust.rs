//! `onward trust`: trusts the project's `onward.toml`. `config/trust.rs` has the rules.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::config::trust::{self, TrustedFile};
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::table::Table;
use crate::output::{Output, format};

/// Trust the project's `onward.toml`, so that all of its keys apply
///
/// Until then the file sets thresholds and names only. Addresses, files, secrets and access rules
/// in it are ignored with a warning, because a cloned repository may contain them. Trust covers one
/// path and its content: after a change, trust the file again. Read the file before you trust it.
#[derive(Args)]
pub(crate) struct Trust {
    /// File, or the directory that contains it [default: the project's file]
    #[arg(value_name = "PATH", conflicts_with = "list")]
    path: Option<PathBuf>,
    /// List the trusted files
    #[arg(long, conflicts_with = "revoke")]
    list: bool,
    /// Stop trusting the file
    #[arg(long)]
    revoke: bool,
}

#[derive(Serialize)]
struct TrustedFiles {
    files: Vec<TrustedFile>,
}

#[derive(Serialize)]
struct Changed {
    file: String,
    trusted: bool,
    /// The keys that apply because of the trust.
    keys: Vec<&'static str>,
}

pub(super) fn run(args: &Trust, output: Output) -> Result {
    if args.list {
        return list(output);
    }
    let path = args.path.as_deref();
    let (path, keys) = if args.revoke {
        (trust::revoke(path)?, Vec::new())
    } else {
        trust::trust(path)?
    };
    let file = format::sanitize_line(&path.display().to_string());
    output.note(&match keys.as_slice() {
        _ if args.revoke => format!("no longer trusted: {file}"),
        [] => format!("trusted: {file}"),
        keys => format!("trusted: {file}, which sets `{}`", keys.join("`, `")),
    });
    if output.json {
        output.print_json(&Changed {
            file,
            trusted: !args.revoke,
            keys,
        })?;
    }
    Ok(Exit::Done)
}

fn list(output: Output) -> Result {
    let files = trust::list()?;
    if output.json {
        output.print_json(&TrustedFiles { files })?;
        return Ok(Exit::Done);
    }
    if files.is_empty() {
        output.note("no trusted files");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["STATE", "FILE"]);
    for file in &files {
        let path = file.path.display().to_string();
        table.row([file.state.as_str().into(), path.into()]);
    }
    output.print(&table.render(output, ""))?;
    Ok(Exit::Done)
}
