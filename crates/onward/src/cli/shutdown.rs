//! Shutdown of a server on SIGTERM or SIGINT, also if its runtime no longer responds.
//!
//! The signals are received on a separate thread and runtime. The server gets a request to
//! stop; if the process still runs at the deadline, this thread ends it.

use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::watch;

use super::signals::Signals;
use super::{CHECK_LIMITS, build_runtime};
use crate::failure::{Failure, Result};

/// Time limit of a shutdown. Longer than all timeouts of an orderly one together.
const DEADLINE: Duration = Duration::from_secs(20);
/// The exit code after the deadline, that of [`Exit::Failed`](crate::exit::Exit::Failed).
const FORCED: i32 = 1;

/// Handles signals from here on. The value becomes true when the process should stop.
pub(super) fn handle_signals() -> Result<watch::Receiver<bool>> {
    handle_signals_within(DEADLINE)
}

fn handle_signals_within(deadline: Duration) -> Result<watch::Receiver<bool>> {
    let runtime = build_runtime(Builder::new_current_thread())?;
    let mut signals = {
        let _context = runtime.enter();
        Signals::new()?
    };
    let (stop, stopped) = watch::channel(false);
    let wait = move || {
        runtime.block_on(async {
            let name = signals.first().await;
            tracing::info!(signal = name, "stopping");
            stop.send_replace(true);
            tokio::time::sleep(deadline).await;
        });
        tracing::error!("the process did not stop in time and is ended; stored data is complete");
        std::process::exit(FORCED);
    };
    std::thread::Builder::new()
        .name("onward-shutdown".to_owned())
        .spawn(wait)
        .map_err(|error| {
            let message = format!("cannot start a thread: {error}");
            Failure::failed(message, CHECK_LIMITS)
        })?;
    Ok(stopped)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use super::*;

    /// Set in the process that blocks.
    const BLOCKED: &str = "ONWARD_TEST_BLOCKED_RUNTIME";
    const NAME: &str = "cli::shutdown::tests::ends_a_process_whose_runtime_is_blocked";
    const READY: &str = "the runtime is blocked";

    fn block() -> ! {
        let stopped = handle_signals_within(Duration::from_millis(200));
        let stopped = stopped.unwrap_or_else(|_| panic!("signals are handled"));
        let runtime = build_runtime(Builder::new_current_thread());
        let runtime = runtime.unwrap_or_else(|_| panic!("the runtime starts"));
        runtime.block_on(async move {
            println!("{READY}");
            drop(stopped);
            loop {
                std::thread::park();
            }
        })
    }

    #[test]
    fn ends_a_process_whose_runtime_is_blocked() {
        if std::env::var_os(BLOCKED).is_some() {
            block();
        }
        let program = std::env::current_exe().expect("path of the test");
        let mut child = Command::new(program)
            .args(["--exact", NAME, "--nocapture"])
            .env(BLOCKED, "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("process started");
        let lines = BufReader::new(child.stdout.take().expect("output is piped")).lines();
        let ready =
            |line: &std::io::Result<String>| line.as_ref().is_ok_and(|line| line.contains(READY));
        assert!(lines.into_iter().any(|line| ready(&line)));
        let pid = child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = child.try_wait().expect("process is a child") {
                assert_eq!(status.code(), Some(FORCED));
                return;
            }
            if Instant::now() > deadline {
                drop(child.kill());
                panic!("the process still runs");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
