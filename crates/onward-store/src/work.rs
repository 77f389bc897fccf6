//! Work in a transaction: a function from a [`Tx`] to a future, which may be called again where a
//! race was lost.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use tokio::sync::{broadcast, oneshot};

use crate::backend::sqlite::{self, Job, Ran, Writer, held};
use crate::error::Error;
use crate::tx::{Changed, Tx};

/// What work in a transaction is while it runs. It may wait for the transaction, and for nothing else.
pub type Running<'t, A, E> = Pin<Box<dyn Future<Output = Result<A, E>> + Send + 't>>;

/// Nothing that runs on a file ever waits, so one poll is enough.
pub(crate) fn poll_once<A, E: From<Error>>(mut work: Running<'_, A, E>) -> Result<A, E> {
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => Err(Error::Refused(
            "a transaction waited for something beside the database".to_owned(),
        )
        .into()),
    }
}

/// Work for the writer, and who waits for its answer.
struct Sent<A, E, F> {
    tenant: Arc<str>,
    work: F,
    answer: Option<Result<A, E>>,
    changed: Vec<Changed>,
    waits: oneshot::Sender<Result<A, E>>,
    watchers: broadcast::Sender<Changed>,
    start: Start,
    begun: bool,
}

/// Taken once: by the writer, which then does the work, or by whoever waits, and then it is never done.
#[derive(Clone, Default)]
struct Start(Arc<AtomicBool>);

impl Start {
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }
}

/// Has work done by the writer. Work that was not begun for too long, because other processes
/// write or one of them has stopped in the middle, is given up.
pub(crate) async fn send<A, E, F>(
    writer: &Writer,
    tenant: &Arc<str>,
    work: F,
    length: sqlite::Work,
    watchers: &broadcast::Sender<Changed>,
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
        start: start.clone(),
        begun: false,
    };
    writer.send(Box::new(job), length);
    // No timer: setting one wakes a thread, for every call.
    let answered = tokio::select! {
        biased;
        answered = &mut answer => answered,
        () = writer.stuck() => match start.take() {
            true => return Err(held().into()),
            false => answer.await,
        },
    };
    answered.unwrap_or_else(|_| Err(gone().into()))
}

pub(crate) fn gone() -> Error {
    Error::unavailable("the call was cut off", "start `onward` again")
}

impl<A, E, F> Job for Sent<A, E, F>
where
    A: Send,
    E: From<Error> + Send,
    F: for<'t> FnMut(&'t mut Tx) -> Running<'t, A, E> + Send,
{
    fn run(&mut self, tx: &mut Tx) -> Ran {
        self.begun = self.begun || self.start.take();
        if !self.begun {
            return Ran::Kept;
        }
        tx.turn_to(Arc::clone(&self.tenant));
        let answer = poll_once((self.work)(tx));
        let sent = poll_once(Box::pin(async {
            tx.ask(Vec::new()).await.map_err(E::from)
        }));
        let answer = match (answer, sent) {
            (Ok(answer), Ok(_)) => Ok(answer),
            (Err(why), _) | (Ok(_), Err(why)) => Err(why),
        };
        self.changed = tx.take_changed();
        let spoilt = answer.is_err() && tx.has_written();
        self.answer = Some(answer);
        if spoilt { Ran::Spoilt } else { Ran::Kept }
    }

    fn finish(self: Box<Self>, committed: Result<(), Error>) {
        let answer = match (committed, self.answer) {
            (Ok(()), Some(answer)) => answer,
            (Err(why), _) => Err(why.into()),
            (Ok(()), None) => Err(Error::Refused("a job was never run".to_owned()).into()),
        };
        if answer.is_ok() {
            for changed in self.changed {
                // Nobody may be watching.
                drop(self.watchers.send(changed));
            }
        }
        // Whoever asked may have gone away; what was done stays done.
        drop(self.waits.send(answer));
    }
}
