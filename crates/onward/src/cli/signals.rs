//! The signals that end a command: SIGTERM and SIGINT, and on Windows the events of the console.

use super::CHECK_LIMITS;
use crate::failure::{Failure, Result};

fn failure(error: &std::io::Error) -> Failure {
    let message = format!("cannot install a signal handler: {error}");
    Failure::failed(message, CHECK_LIMITS)
}

#[cfg(unix)]
mod platform {
    use tokio::signal::unix::{Signal, SignalKind, signal};

    use super::{Result, failure};

    pub(in crate::cli) struct Signals {
        terminate: Signal,
        interrupt: Signal,
        hangup: Option<Signal>,
    }

    impl Signals {
        /// Handles the signals from here on.
        pub(in crate::cli) fn new() -> Result<Self> {
            let listen = |kind| signal(kind).map_err(|error| failure(&error));
            Ok(Self {
                terminate: listen(SignalKind::terminate())?,
                interrupt: listen(SignalKind::interrupt())?,
                hangup: None,
            })
        }

        /// Also handles the end of the terminal.
        pub(in crate::cli) fn with_hangup() -> Result<Self> {
            let hangup = signal(SignalKind::hangup()).map_err(|error| failure(&error))?;
            Ok(Self {
                hangup: Some(hangup),
                ..Self::new()?
            })
        }

        /// Waits for the first signal, and returns its name.
        pub(in crate::cli) async fn first(&mut self) -> &'static str {
            let hangup = async {
                match &mut self.hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.terminate.recv() => "SIGTERM",
                _ = self.interrupt.recv() => "SIGINT",
                _ = hangup => "SIGHUP",
            }
        }
    }
}

#[cfg(windows)]
mod platform {
    use tokio::signal::windows::{
        CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
    };

    use super::{Result, failure};

    pub(in crate::cli) struct Signals {
        interrupt: CtrlC,
        stop: CtrlBreak,
        close: CtrlClose,
        shutdown: CtrlShutdown,
    }

    impl Signals {
        /// Handles the events from here on.
        pub(in crate::cli) fn new() -> Result<Self> {
            Ok(Self {
                interrupt: ctrl_c().map_err(|error| failure(&error))?,
                stop: ctrl_break().map_err(|error| failure(&error))?,
                close: ctrl_close().map_err(|error| failure(&error))?,
                shutdown: ctrl_shutdown().map_err(|error| failure(&error))?,
            })
        }

        /// The end of the console is always handled.
        pub(in crate::cli) fn with_hangup() -> Result<Self> {
            Self::new()
        }

        /// Waits for the first event, and returns its name.
        pub(in crate::cli) async fn first(&mut self) -> &'static str {
            tokio::select! {
                _ = self.interrupt.recv() => "CTRL_C",
                _ = self.stop.recv() => "CTRL_BREAK",
                _ = self.close.recv() => "CTRL_CLOSE",
                _ = self.shutdown.recv() => "CTRL_SHUTDOWN",
            }
        }
    }
}

pub(super) use platform::Signals;
