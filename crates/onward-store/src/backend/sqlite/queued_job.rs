//! A job in the queue of the writer, which its caller can withdraw until it starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::connection::Connection;
use crate::backend::{Job, JobOutcome};
use crate::error::Error;

/// Start flag of a job. It is taken once: by the writer, which then runs the job, or by the caller,
/// and then the job never runs.
#[derive(Clone, Default)]
pub(super) struct Start(Arc<AtomicBool>);

impl Start {
    pub(super) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }
}

/// A job in the queue.
pub(super) struct QueuedJob {
    job: Box<dyn Job>,
    start: Start,
    started: bool,
}

impl QueuedJob {
    pub(super) fn new(job: Box<dyn Job>, start: Start) -> Self {
        Self {
            job,
            start,
            started: false,
        }
    }

    /// Runs the job, unless it was withdrawn.
    pub(super) fn run(&mut self, connection: &Connection) -> JobOutcome {
        self.started = self.started || self.start.take();
        if self.started {
            self.job.run(Box::new(connection.clone()))
        } else {
            JobOutcome::Clean
        }
    }

    /// Returns the result to the caller, or the error of the commit.
    pub(super) fn finish(self, committed: Result<(), Error>) {
        self.job.finish(committed);
    }
}
