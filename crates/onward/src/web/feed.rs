//! Fan-out of change events: all subscribers of a tenant share one change watcher. It starts with
//! the first subscription and stops with the last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use onward_engine::{Caller, Engine, Subject};
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

use crate::mcp::subscriptions::ChangeStream;

/// Buffered changes per subscriber. A slower subscriber misses changes and is notified of that.
const CAPACITY: usize = 256;

/// The running feeds, by tenant.
#[derive(Default)]
pub(super) struct Feeds(Mutex<HashMap<Arc<str>, Weak<Feed>>>);

/// The feed of one tenant.
pub(super) struct Feed {
    changed: broadcast::Sender<Subject>,
    task: AbortHandle,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A subscription to a feed. Keeps the feed running.
pub(super) struct Subscription {
    pub(super) changes: broadcast::Receiver<Subject>,
    _feed: Arc<Feed>,
}

impl Feeds {
    /// Subscribes to changes of plans and sessions of the caller's tenant.
    pub(super) fn subscribe(
        &self,
        engine: &Engine,
        caller: &Caller,
        stop: &watch::Receiver<bool>,
    ) -> Subscription {
        // A poisoned map is consistent: every use is one operation.
        let mut feeds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let running = feeds.get(&caller.tenant).and_then(Weak::upgrade);
        let feed = running.unwrap_or_else(|| {
            let changes = ChangeStream::new(engine.clone(), caller.clone(), stop.clone());
            let feed = Arc::new(Feed::spawn(changes));
            feeds.insert(Arc::clone(&caller.tenant), Arc::downgrade(&feed));
            feed
        });
        Subscription {
            changes: feed.changed.subscribe(),
            _feed: feed,
        }
    }
}

impl Feed {
    fn spawn(mut changes: ChangeStream) -> Self {
        let (changed, _) = broadcast::channel(CAPACITY);
        let sender = changed.clone();
        let task = tokio::spawn(async move {
            while let Some(subject) = changes.next().await {
                // Fails without subscribers; the task is about to be aborted then.
                let _ = sender.send(subject);
            }
        });
        Self {
            changed,
            task: task.abort_handle(),
        }
    }
}
