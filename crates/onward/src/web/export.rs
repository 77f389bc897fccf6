//! Plan downloads of any size: the document is written to a temporary file and sent from there.

use std::fs::File;
use std::io::{Read as _, Seek as _};
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
    let bytes = file.metadata().map_err(|error| unavailable(&error))?.len();
    (&*file).rewind().map_err(|error| unavailable(&error))?;
    let chunks = stream::iter(std::iter::from_fn(move || read_chunk(&file)));
    let headers = [
        (CONTENT_TYPE, "application/json".to_owned()),
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
