//! A database on a PostgreSQL server that may not be available yet.
//!
//! A server that starts before its database connects in the background: one attempt at a time, with
//! a pause in between. Calls wait for the first attempt, for a limited time, and then fail with the
//! error of the last attempt.

use std::pin::Pin;
use std::time::Duration;

use tokio::sync::{broadcast, watch};
use tokio::time::timeout;

use super::server::Postgres;
use crate::change::Changed;
use crate::error::Error;

/// Pause between attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long a server that starts waits for the first attempt.
const START: Duration = Duration::from_secs(1);
/// How long a call waits for the first attempt. An attempt connects with its own timeout; if it also
/// creates the schema, a busy machine needs seconds. Less than the time limit of an HTTP request.
const CALL: Duration = Duration::from_secs(25);

/// An attempt to connect.
pub(crate) type Attempt = Pin<Box<dyn Future<Output = Result<Postgres, Error>> + Send>>;

/// The database, once it is connected. Clones share it.
#[derive(Clone)]
pub(crate) struct Connecting(watch::Receiver<State>);

enum State {
    /// The first attempt is in progress.
    First,
    /// The last attempt failed.
    Failed(Error),
    Connected(Postgres),
}

impl Connecting {
    /// A database that is connected.
    pub(crate) fn connected(postgres: Postgres) -> Self {
        Self(watch::channel(State::Connected(postgres)).1)
    }

    /// Connects in the background, and then notifies the subscribers. Fails if the first attempt shows
    /// that retries are pointless: the address or the schema is wrong.
    pub(crate) async fn start(
        attempt: impl Fn() -> Attempt + Send + Sync + 'static,
        watchers: broadcast::Sender<Changed>,
    ) -> Result<Self, Error> {
        let (sender, state) = watch::channel(State::First);
        tokio::spawn(async move {
            let connected = async {
                loop {
                    match attempt().await {
                        Ok(postgres) => return postgres,
                        Err(why) => sender.send_replace(State::Failed(why)),
                    };
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
            };
            // Ends when the store is dropped.
            let connected = tokio::select! {
                connected = connected => connected,
                () = sender.closed() => return,
            };
            sender.send_replace(State::Connected(connected));
            // There may be no subscriber.
            drop(watchers.send(Changed::all()));
        });
        let connecting = Self(state);
        match connecting.within(START).await {
            Ok(_) | Err(Error::Unavailable { .. }) => Ok(connecting),
            Err(why) => Err(why),
        }
    }

    /// The connected database. Waits for the first attempt, with a timeout.
    pub(crate) async fn get(&self) -> Result<Postgres, Error> {
        self.within(CALL).await
    }

    /// The database, if it is connected.
    pub(crate) fn current(&self) -> Option<Postgres> {
        match &*self.0.borrow() {
            State::Connected(postgres) => Some(postgres.clone()),
            State::First | State::Failed(_) => None,
        }
    }

    async fn within(&self, limit: Duration) -> Result<Postgres, Error> {
        if let State::Connected(postgres) = &*self.0.borrow() {
            return Ok(postgres.clone());
        }
        let mut state = self.0.clone();
        let attempted = state.wait_for(|state| !matches!(state, State::First));
        let why = match timeout(limit, attempted).await {
            Ok(Ok(state)) => match &*state {
                State::Connected(postgres) => return Ok(postgres.clone()),
                State::Failed(why) => Some(why.clone()),
                State::First => None,
            },
            Ok(Err(_)) | Err(_) => None,
        };
        Err(why.unwrap_or_else(|| {
            Error::unavailable(
                format_args!("no connection within {limit:?}"),
                "retry the call",
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_the_first_attempt_and_the_start_does_not() {
        let attempt = || -> Attempt {
            Box::pin(async {
                sleep(Duration::from_secs(10)).await;
                Err(Error::unavailable("the attempt failed", "retry the call"))
            })
        };
        let began = Instant::now();
        let watchers = broadcast::channel(1).0;
        let connecting = Connecting::start(attempt, watchers).await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 1);
        let failed = connecting.get().await.err().unwrap();
        assert!(
            matches!(&failed, Error::Unavailable { why, .. } if why == "the attempt failed"),
            "{failed}"
        );
    }
}
