//! Plan downloads of any size: the document is written to a temporary file and sent from there.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use onward_core::{Code, PlanId};
use onward_engine::Caller;

use super::Site;
use super::cookies::hex;
use super::problem::Problem;
use crate::private;

/// Bytes that are read from the file at a time.
const CHUNK: usize = 64 * 1024;

/// A plan as a JSON document for `onward import`.
pub(super) async fn show(site: &Site, caller: &Caller, plan: PlanId) -> Result<Response, Problem> {
    let file = Arc::new(temporary_file().map_err(|error| unavailable(&error))?);
    let permit = site.limits.exports.acquire().await;
    site.engine
        .export_to(caller, plan, Arc::clone(&file))
        .await?;
    drop(permit);
    response(&file, "application/json").map_err(|error| unavailable(&error))
}

/// Several plans, one JSON document per line, for `onward import`.
pub(super) async fn show_all(
    site: &Site,
    caller: &Caller,
    plans: &[PlanId],
) -> Result<Response, Problem> {
    let failed = |error| unavailable(&error);
    let all = Arc::new(temporary_file().map_err(failed)?);
    let one = Arc::new(temporary_file().map_err(failed)?);
    let permit = site.limits.exports.acquire().await;
    for plan in plans {
        site.engine
            .export_to(caller, *plan, Arc::clone(&one))
            .await?;
        append(&one, &all).map_err(failed)?;
    }
    drop(permit);
    response(&all, "application/jsonl").map_err(failed)
}

/// Adds a document and a line break to a file.
fn append(mut document: &File, mut all: &File) -> std::io::Result<()> {
    document.rewind()?;
    std::io::copy(&mut document, &mut all)?;
    all.write_all(b"\n")
}

/// The content of a file as a response.
fn response(file: &Arc<File>, kind: &str) -> std::io::Result<Response> {
    let bytes = file.metadata()?.len();
    (&**file).rewind()?;
    let file = Arc::clone(file);
    let chunks = stream::iter(std::iter::from_fn(move || read_chunk(&file)));
    let headers = [
        (CONTENT_TYPE, kind.to_owned()),
        (CONTENT_LENGTH, bytes.to_string()),
    ];
    Ok((headers, Body::from_stream(chunks)).into_response())
}

fn read_chunk(mut file: &File) -> Option<std::io::Result<Bytes>> {
    let mut chunk = vec![0; CHUNK];
    match file.read(&mut chunk) {
        Ok(0) => None,
        Ok(read) => {
            chunk.truncate(read);
            Some(Ok(chunk.into()))
        }
        Err(error) => Some(Err(error)),
    }
}

/// A file without a name, which the system deletes when it is closed.
fn temporary_file() -> std::io::Result<File> {
    let mut name = [0; 16];
    getrandom::fill(&mut name)?;
    let path = std::env::temp_dir().join(format!("onward-export-{}", hex(&name)));
    let file = private::new_file().read(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn unavailable(error: &std::io::Error) -> Problem {
    Problem::new(
        Code::Unavailable,
        format!("cannot write the export: {error}"),
        "check the free space of the server's temporary directory, then retry",
    )
}
