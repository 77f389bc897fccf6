//! Closures that run in a transaction: functions from a [`Tx`] to a future, called again after a
//! lost race. A backend with one writer runs them as jobs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::{broadcast, oneshot};
use tracing::Span;

use crate::backend::{Exec, Job, JobOutcome};
use crate::change::Changed;
use crate::error::Error;
use crate::fault::Faults;
use crate::interrupt::{self, Permit, gone};
use crate::tx::{Committed, Tx};

/// The future of a closure that runs in a transaction. It may await the transaction and nothing
/// else.
pub type Running<'t, A, E> = Pin<Box<dyn Future<Output = Result<A, E>> + Send + 't>>;

/// Polls a future once. On a backend with one writer nothing in a transaction is asynchronous, so
/// one poll completes it.
pub(crate) fn poll_once<A, E: From<Error>>(mut work: Running<'_, A, E>) -> Result<A, E> {
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => {
            Err(Error::refused("a transaction awaited something other than the database").into())
        }
    }
}

/// A job, and the channel that returns its result to the caller.
struct Sent<A, E, F> {
    tenant: Arc<str>,
    work: F,
    answer: Option<Result<A, E>>,
    committed: Committed,
    /// Span of the caller, for the log lines of the work.
    span: Span,
    waits: oneshot::Sender<Result<A, E>>,
    watchers: broadcast::Sender<Changed>,
    faults: Faults,
    /// The caller's permit, until the job has ended.
    _permit: Option<Permit>,
}

/// A job that runs `work`, and the channel for its result.
pub(crate) fn job<A, E, F>(
    tenant: &Arc<str>,
    work: F,
    watchers: &broadcast::Sender<Changed>,
    faults: &Faults,
) -> (Box<dyn Job>, oneshot::Receiver<Result<A, E>>)
where
    A: Send + 'static,
    E: From<Error> + Send + 'static,
    F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E> + Send + 'static,
{
    let (waits, answer) = oneshot::channel();
    let job = Sent {
        tenant: Arc::clone(tenant),
        work,
        answer: None,
        committed: Committed::default(),
        span: Span::current(),
        waits,
        watchers: watchers.clone(),
        faults: faults.clone(),
        _permit: interrupt::permit(),
    };
    (Box::new(job), answer)
}

/// Waits for the result of a job, or for the error with which it is withdrawn.
pub(crate) async fn wait<A, E: From<Error>>(
    answer: oneshot::Receiver<Result<A, E>>,
    withdrawn: impl Future<Output = Error>,
) -> Result<A, E> {
    tokio::select! {
        biased;
        answered = answer => answered.unwrap_or_else(|_| Err(gone().into())),
        why = withdrawn => Err(why.into()),
    }
}

impl<A, E, F> Job for Sent<A, E, F>
where
    A: Send,
    E: From<Error> + Send,
    F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E> + Send,
{
    fn run(&mut self, exec: Box<dyn Exec>) -> JobOutcome {
        let _entered = self.span.clone().entered();
        let mut tx = Tx::new(exec, Arc::clone(&self.tenant), self.faults.clone());
        // A panic rolls back this job only: the jobs of other callers run again without it.
        let answer = catch_unwind(AssertUnwindSafe(|| poll_once((self.work)(&mut tx))));
        let Ok(answer) = answer else {
            self.answer = Some(Err(Error::refused("a write panicked").into()));
            return JobOutcome::Dirty;
        };
        // Sends the writes that are still queued.
        let sent = poll_once(Box::pin(async {
            tx.query(Vec::new()).await.map_err(E::from)
        }));
        let answer = match (answer, sent) {
            (Ok(answer), Ok(_)) => Ok(answer),
            (Err(why), _) | (Ok(_), Err(why)) => Err(why),
        };
        self.committed = tx.take_committed();
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
            let mut committed = self.committed;
            for changed in std::mem::take(&mut committed.changed) {
                // There may be no subscriber.
                drop(self.watchers.send(changed));
            }
            self.span.in_scope(|| committed.run());
        }
        // The caller may have been dropped; the commit stays.
        drop(self.waits.send(answer));
    }
}

#[cfg(test)]
mod tests {
    use onward_testbed::TestDir;

    use crate::{Address, Error, Options, Store};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_write_that_panics_fails_alone() {
        let dir = TestDir::new("panic");
        let address = Address::File(dir.join("onward.db"));
        let store = Store::open(&address, Options::default()).await.unwrap();
        let tenant = "local".into();
        for _ in 0..2 {
            let panics = store.write(&tenant, |_| {
                Box::pin(async {
                    assert_eq!(1, 2, "a bug");
                    Ok::<(), Error>(())
                })
            });
            let succeeds = store.write(&tenant, |_| Box::pin(async { Ok::<(), Error>(()) }));
            let (panicked, succeeded) = tokio::join!(panics, succeeds);
            panicked.unwrap_err();
            succeeded.unwrap();
        }
        store.close().await;
    }
}
