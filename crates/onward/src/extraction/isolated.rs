//! Runs work whose duration depends on untrusted input, outside the async runtime: on at most two
//! threads, and with a time limit for the caller.
//!
//! A thread cannot be interrupted. Work that exceeds its time limit keeps its thread until it ends,
//! so the input must be bounded first (`schema/work.rs`). The runtime does not wait for these
//! threads when it stops.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};

/// Threads that may run at the same time.
const MAX_THREADS: usize = 2;
/// Time limit, including the wait for a thread.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A validator calls itself for each level of a schema.
const STACK_BYTES: usize = 32 * 1024 * 1024;

static THREADS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MAX_THREADS)));

/// Why work has no result: it took too long, it panicked, or the system has no more threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overrun;

/// Runs work on a separate thread.
pub(crate) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Overrun> {
    run_within(TIMEOUT, work).await
}

async fn run_within<T: Send + 'static>(
    timeout: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Overrun> {
    let result = async {
        let permit = Arc::clone(&THREADS).acquire_owned().await;
        let permit = permit.map_err(|_| Overrun)?;
        let (sender, receiver) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("onward-isolated".to_owned())
            .stack_size(STACK_BYTES);
        thread
            .spawn(move || {
                // Fails if the caller has stopped waiting.
                drop(sender.send(work()));
                drop(permit);
            })
            .map_err(|_| Overrun)?;
        receiver.await.map_err(|_| Overrun)
    };
    tokio::time::timeout(timeout, result)
        .await
        .unwrap_or(Err(Overrun))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn returns_while_the_work_still_runs() {
        let (finish, finished) = mpsc::channel::<()>();
        let blocked = run_within(Duration::from_millis(20), move || finished.recv().is_ok());
        assert_eq!(blocked.await, Err(Overrun));
        assert_eq!(run(|| 1 + 1).await, Ok(2), "another thread is free");
        drop(finish);
        assert_eq!(run(|| panic!("expected")).await, Err::<(), _>(Overrun));
        assert_eq!(run(|| 1 + 1).await, Ok(2));
    }
}
