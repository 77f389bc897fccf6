//! Work on another thread for a caller that may be gone: it keeps the caller's permit, and stops when
//! the caller is dropped.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// The error of a call that was interrupted.
pub(crate) fn gone() -> Error {
    Error::unavailable("the call was interrupted", "restart `onward`")
}

/// A value that the work of a caller keeps.
pub(crate) type Permit = Arc<dyn Any + Send + Sync>;

tokio::task_local! {
    static PERMIT: Permit;
}

/// Runs a future. The reads and writes that it starts keep the permit until they have ended, even if
/// the future is dropped before.
pub fn with_permit<F: Future>(
    permit: Arc<dyn Any + Send + Sync>,
    future: F,
) -> impl Future<Output = F::Output> {
    PERMIT.scope(permit, future)
}

/// Runs a future in another task with the permit of the current one.
pub fn with_current_permit<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let permit = permit();
    async move {
        match permit {
            Some(permit) => with_permit(permit, future).await,
            None => future.await,
        }
    }
}

/// The permit of the current task.
pub(crate) fn permit() -> Option<Permit> {
    PERMIT.try_with(Arc::clone).ok()
}

/// Stops the current statement of a connection.
pub(crate) type Stop = Box<dyn Fn() + Send>;

/// Whether the caller of a transaction is gone.
#[derive(Default)]
pub(crate) struct Interrupt {
    is_gone: AtomicBool,
    /// Stops the current statement, while the transaction runs.
    running: Mutex<Option<Stop>>,
}

/// Interrupts the transaction when the caller is dropped.
pub(crate) struct InterruptOnDrop(Arc<Interrupt>);

impl Interrupt {
    pub(crate) fn new() -> (Arc<Self>, InterruptOnDrop) {
        let interrupt = Arc::<Self>::default();
        (Arc::clone(&interrupt), InterruptOnDrop(interrupt))
    }

    /// An error if the caller is gone.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_gone.load(Ordering::SeqCst) {
            return Err(gone());
        }
        Ok(())
    }

    /// The transaction runs on this connection.
    pub(crate) fn watch(&self, connection: Stop) {
        *self.running() = Some(connection);
    }

    /// The transaction has ended: another one may use the connection.
    pub(crate) fn end(&self) {
        self.running().take();
    }

    fn running(&self) -> MutexGuard<'_, Option<Stop>> {
        // Every critical section is one operation.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.is_gone.store(true, Ordering::SeqCst);
        if let Some(stop) = &*self.0.running() {
            stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use onward_core::Timestamp;
    use onward_testbed::TestDir;

    use super::*;
    use crate::{Address, DueChecks, Options, Store};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_read_without_a_caller_stops_and_keeps_its_permit_until_then() {
        let dir = TestDir::new("interrupt");
        let address = Address::File(dir.join("onward.db"));
        let store = Store::open(&address, Options::default()).await.unwrap();
        let permit: Permit = Arc::new(());
        let (started, running) = mpsc::channel();
        let (ended, outcome) = mpsc::channel();
        let reading = {
            let store = store.clone();
            let reading = async move {
                store
                    .read(&Arc::from("local"), move |tx| {
                        let (started, ended) = (started.clone(), ended.clone());
                        Box::pin(async move {
                            // Without an end, unless the caller is gone.
                            let failed = loop {
                                let read =
                                    DueChecks(tx).due_until(Timestamp::from_millis(0), 1).await;
                                started.send(()).ok();
                                if let Err(failed) = read {
                                    break failed;
                                }
                            };
                            ended.send(()).ok();
                            Err::<(), Error>(failed)
                        })
                    })
                    .await
            };
            tokio::spawn(with_permit(Arc::clone(&permit), reading))
        };
        tokio::task::block_in_place(|| running.recv()).unwrap();
        assert!(Arc::strong_count(&permit) > 1);
        reading.abort();
        tokio::task::block_in_place(|| outcome.recv()).unwrap();
        while Arc::strong_count(&permit) > 1 {
            tokio::task::yield_now().await;
        }
        // The connection is free for others.
        let tenant = Arc::from("local");
        let read = store.read(&tenant, |tx| {
            Box::pin(async move {
                DueChecks(tx)
                    .due_until(Timestamp::from_millis(0), 1)
                    .await
                    .map(drop)
            })
        });
        let read: Result<(), Error> = read.await;
        read.unwrap();
    }
}
