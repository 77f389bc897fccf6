//! Closures that run in a transaction: functions from a [`Tx`] to a future, called again after a
//! lost race. On SQLite they are sent to the writer as jobs.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use tokio::sync::{broadcast, oneshot};

use crate::backend::sqlite::{self, Connection, Job, JobOutcome, Writer, locked};
use crate::change::Changed;
use crate::error::Error;
use crate::fault::Faults;
use crate::tx::Tx;

/// The future of a closure that runs in a transaction. It may await the transaction and nothing
/// else.
pub type Running<'t, A, E> = Pin<Box<dyn Future<Output = Result<A, E>> + Send + 't>>;

/// Polls a future once. On SQLite nothing in a transaction is asynchronous, so one poll completes
/// it.
pub(crate) fn poll_once<A, E: From<Error>>(mut work: Running<'_, A, E>) -> Result<A, E> {
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => {
            Err(Error::refused("a transaction awaited something other than the database").into())
        }
    }
}

/// A job for the writer, and the channel that returns its result to the caller.
struct Sent<A, E, F> {
    tenant: Arc<str>,
    work: F,
    answer: Option<Result<A, E>>,
    changed: Vec<Changed>,
    waits: oneshot::Sender<Result<A, E>>,
    watchers: broadcast::Sender<Changed>,
    faults: Faults,
    start: Start,
    begun: bool,
}

/// Start flag of a job. It is taken once: by the writer, which then runs the job, or by the caller
/// on timeout, and then the job never runs.
#[derive(Clone, Default)]
struct Start(Arc<AtomicBool>);

impl Start {
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }
}

/// Runs `work` on the writer and waits for the result. If the write queue is stuck (another process
/// writes for too long, or is suspended) and the job has not started, the call fails and the job
/// never runs.
pub(crate) async fn send<A, E, F>(
    writer: &Writer,
    tenant: &Arc<str>,
    work: F,
    length: sqlite::Work,
    watchers: &broadcast::Sender<Changed>,
    faults: &Faults,
) -> Result<A, E>
where
    A: Send + 'static,
    E: From<Error> + Send + 'static,
    F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E> + Send + 'static,
{
    let (waits, mut answer) = oneshot::channel();
    let start = Start::default();
    let job = Sent {
        tenant: Arc::clone(tenant),
        work,
        answer: None,
        changed: Vec::new(),
        waits,
        watchers: watchers.clone(),
        faults: faults.clone(),
        start: start.clone(),
        begun: false,
    };
    writer.send(Box::new(job), length);
    // No timer per call: setting one wakes a thread.
    let answered = tokio::select! {
        biased;
        answered = &mut answer => answered,
        () = writer.stuck() => match start.take() {
            true => return Err(locked().into()),
            false => answer.await,
        },
    };
    answered.unwrap_or_else(|_| Err(gone().into()))
}

pub(crate) fn gone() -> Error {
    Error::unavailable("the call was interrupted", "restart `onward`")
}

impl<A, E, F> Job for Sent<A, E, F>
where
    A: Send,
    E: From<Error> + Send,
    F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E> + Send,
{
    fn run(&mut self, connection: &Connection) -> JobOutcome {
        self.begun = self.begun || self.start.take();
        if !self.begun {
            return JobOutcome::Clean;
        }
        let exec = Box::new(connection.clone());
        let mut tx = Tx::new(exec, Arc::clone(&self.tenant), self.faults.clone());
        let answer = poll_once((self.work)(&mut tx));
        // Sends the writes that are still queued.
        let sent = poll_once(Box::pin(async {
            tx.query(Vec::new()).await.map_err(E::from)
        }));
        let answer = match (answer, sent) {
            (Ok(answer), Ok(_)) => Ok(answer),
            (Err(why), _) | (Ok(_), Err(why)) => Err(why),
        };
        self.changed = tx.take_changed();
        let is_dirty = answer.is_err() && tx.has_written();
        self.answer = Some(answer);
        if is_dirty {
            JobOutcome::Dirty
        } else {
            JobOutcome::Clean
        }
    }

    fn finish(self: Box<Self>, committed: Result<(), Error>) {
        let answer = match (committed, self.answer) {
            (Ok(()), Some(answer)) => answer,
            (Err(why), _) => Err(why.into()),
            (Ok(()), None) => Err(Error::refused("a job was never run").into()),
        };
        if answer.is_ok() {
            for changed in self.changed {
                // There may be no subscriber.
                drop(self.watchers.send(changed));
            }
        }
        // The caller may have been dropped; the commit stays.
        drop(self.waits.send(answer));
    }
}
