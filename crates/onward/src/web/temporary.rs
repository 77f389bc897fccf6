//! Temporary files of downloads. The system deletes them when they are closed. Their bytes count
//! against a pool with fair shares, because a client can read slowly.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use onward_core::Code;
use onward_engine::transfer::ExportTarget;

use super::auth::Principal;
use super::cookies::hex;
use super::fair_queue::{FairQueue, Permit};
use super::limits::{KIB, too_many};
use super::problem::Problem;
use super::shares::Exhausted;
use crate::private;

/// Bytes that are read from the file at a time.
const CHUNK: usize = 64 * 1024;
/// KiB by which the share of a file grows.
const STEP: usize = 1024;

/// A file without a name.
pub(super) struct TemporaryFile {
    file: File,
    share: Mutex<Share>,
}

struct Share {
    permit: Permit,
    /// Bytes of the file.
    written: usize,
    /// Where the current document starts.
    start: usize,
    /// The share that a write would have exceeded.
    exhausted: Option<Exhausted>,
}

impl TemporaryFile {
    pub(super) fn new(pool: &Arc<FairQueue>, principal: &Principal) -> Result<Arc<Self>, Problem> {
        let permit = pool.try_acquire(principal, STEP).map_err(too_many_bytes)?;
        let share = Share {
            permit,
            written: 0,
            start: 0,
            exhausted: None,
        };
        Ok(Arc::new(Self {
            file: create().map_err(|error| unavailable(&error))?,
            share: Mutex::new(share),
        }))
    }

    /// Starts another document after the ones that are complete.
    pub(super) fn start_document(&self) {
        let mut share = self.share();
        share.start = share.written;
    }

    /// The response to a failed write.
    pub(super) fn problem(&self, otherwise: impl Into<Problem>) -> Problem {
        match self.share().exhausted {
            Some(exhausted) => too_many_bytes(exhausted),
            None => otherwise.into(),
        }
    }

    /// The content as a response, which keeps the file and its share until it is sent.
    pub(super) fn into_response(self: Arc<Self>, kind: &str) -> Result<Response, Problem> {
        let rewound = (&self.file).rewind();
        rewound.map_err(|error| unavailable(&error))?;
        let headers = [
            (CONTENT_TYPE, kind.to_owned()),
            (CONTENT_LENGTH, self.share().written.to_string()),
        ];
        let chunks = stream::iter(std::iter::from_fn(move || self.read_chunk()));
        Ok((headers, Body::from_stream(chunks)).into_response())
    }

    fn read_chunk(&self) -> Option<io::Result<Bytes>> {
        let mut chunk = vec![0; CHUNK];
        match (&self.file).read(&mut chunk) {
            Ok(0) => None,
            Ok(read) => {
                chunk.truncate(read);
                Some(Ok(chunk.into()))
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn share(&self) -> MutexGuard<'_, Share> {
        // Every critical section leaves valid numbers.
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExportTarget for TemporaryFile {
    fn restart(&self) -> io::Result<()> {
        let mut share = self.share();
        share.written = share.start;
        let start = u64::try_from(share.start).unwrap_or(u64::MAX);
        (&self.file).seek(SeekFrom::Start(start))?;
        self.file.set_len(start)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut share = self.share();
        let written = share.written.saturating_add(bytes.len());
        let missing = written.div_ceil(KIB).saturating_sub(share.permit.units());
        if missing > 0
            && let Err(exhausted) = share.permit.try_grow(missing.max(STEP))
        {
            share.exhausted = Some(exhausted);
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        share.written = written;
        (&self.file).write_all(bytes)
    }
}

fn create() -> io::Result<File> {
    let mut name = [0; 16];
    getrandom::fill(&mut name)?;
    let path = std::env::temp_dir().join(format!("onward-export-{}", hex(&name)));
    let file = private::new_file().read(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn too_many_bytes(exhausted: Exhausted) -> Problem {
    too_many("bytes in temporary files", exhausted)
}

pub(super) fn unavailable(error: &io::Error) -> Problem {
    Problem::new(
        Code::Unavailable,
        format!("cannot write the export: {error}"),
        "check the free space of the server's temporary directory, then retry",
    )
}

#[cfg(test)]
mod tests {
    use onward_engine::Caller;

    use super::*;
    use crate::web::shares::Shares;

    fn principal(key: u64) -> Principal {
        Principal {
            caller: Caller::local("a"),
            key,
            is_local_user: false,
        }
    }

    fn code(result: Result<Arc<TemporaryFile>, Problem>) -> Option<Code> {
        result.err().map(|problem| problem.code())
    }

    #[test]
    fn the_bytes_of_a_caller_have_a_limit() {
        let pool = FairQueue::new(Shares::new(12 * STEP));
        let file = TemporaryFile::new(&pool, &principal(1)).unwrap();
        let mib = vec![0; KIB * STEP];
        for _ in 0..3 {
            file.write(&mib).unwrap();
        }
        let failed = file.write(&[0]).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::QuotaExceeded);
        let problem = file.problem(unavailable(&failed));
        assert_eq!(problem.code(), Code::RateLimited);
        let second = TemporaryFile::new(&pool, &principal(1));
        assert_eq!(code(second), Some(Code::RateLimited));
        assert_eq!(code(TemporaryFile::new(&pool, &principal(2))), None);
        let response = file.into_response("text/plain").unwrap();
        assert!(TemporaryFile::new(&pool, &principal(1)).is_err());
        drop(response);
        assert!(TemporaryFile::new(&pool, &principal(1)).is_ok());
    }

    #[test]
    fn a_document_that_is_written_again_replaces_itself_only() {
        let pool = FairQueue::new(Shares::new(8 * STEP));
        let file = TemporaryFile::new(&pool, &principal(1)).unwrap();
        file.write(b"first\n").unwrap();
        file.start_document();
        file.write(b"incomplete").unwrap();
        file.restart().unwrap();
        file.write(b"second").unwrap();
        (&file.file).rewind().unwrap();
        assert_eq!(file.read_chunk().unwrap().unwrap(), "first\nsecond");
        assert_eq!(file.share().written, 12);
    }
}
