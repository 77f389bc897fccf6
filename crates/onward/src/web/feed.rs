//! What changes, for everybody who listens: one watch for each tenant that somebody listens to, however
//! many do. It begins with the first of them and ends with the last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use onward_engine::{Caller, Engine, Subject};
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

use crate::mcp::changes::Changes;

/// How far somebody may be behind before they are told that they missed something.
const BEHIND: usize = 256;

/// The watches that there are.
#[derive(Default)]
pub(super) struct Feeds(Mutex<HashMap<Arc<str>, Weak<Feed>>>);

/// The watch of one tenant.
pub(super) struct Feed {
    changed: broadcast::Sender<Subject>,
    task: AbortHandle,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Somebody who listens; while they do, there is a watch.
pub(super) struct Listening {
    pub(super) changed: broadcast::Receiver<Subject>,
    _feed: Arc<Feed>,
}

impl Feeds {
    /// Hears of every plan and session of the caller's tenant that changes from now on.
    pub(super) fn listen(
        &self,
        engine: &Engine,
        caller: &Caller,
        stop: &watch::Receiver<bool>,
    ) -> Listening {
        // Whoever panicked while holding it left it whole.
        let mut feeds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let known = feeds.get(&caller.tenant).and_then(Weak::upgrade);
        let feed = known.unwrap_or_else(|| {
            let changes = Changes::new(engine.clone(), caller.clone(), stop.clone());
            let feed = Arc::new(Feed::begin(changes));
            feeds.insert(Arc::clone(&caller.tenant), Arc::downgrade(&feed));
            feed
        });
        Listening {
            changed: feed.changed.subscribe(),
            _feed: feed,
        }
    }
}

impl Feed {
    fn begin(mut changes: Changes) -> Self {
        let (changed, _) = broadcast::channel(BEHIND);
        let told = changed.clone();
        let task = tokio::spawn(async move {
            while let Some(what) = changes.next().await {
                // Whoever listened may just have gone.
                let _ = told.send(what);
            }
        });
        Self {
            changed,
            task: task.abort_handle(),
        }
    }
}
