//! The notification queue and its delivery state.
//!
//! A notification is written in the transaction of the change that it reports, so none is lost;
//! repeated findings are deduplicated. A server claims a notification in a transaction before it
//! sends it, so several servers send it once. A claim expires: if the server exits before it
//! records the attempt, the notification is sent again with the same key.

use std::sync::Arc;
use std::time::Duration;

use onward_core::finding::Kind;
use onward_core::role::Permission;
use onward_core::step::Review;
use onward_core::{PlanStatus, Step, StepId, Timestamp};
use onward_store::{Delivery, Notice, Notifications, Plans, Tx};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::list::OpenReview;

/// How long a claim is valid. Longer than any delivery attempt.
pub const CLAIM_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of delivery attempts.
pub const MAX_ATTEMPTS: u32 = 8;
/// A notification that is older at its first attempt is dropped.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum length of a stored error, in characters.
const MAX_ERROR_CHARS: usize = 300;

/// Delay before the next attempt: seconds at first, hours in the end.
pub fn retry_delay(attempts: u32) -> Duration {
    Duration::from_secs(match attempts {
        0 | 1 => 1,
        2 => 10,
        3 => 60,
        4 => 5 * 60,
        5 => 30 * 60,
        6 => 2 * 60 * 60,
        _ => 6 * 60 * 60,
    })
}

/// A notification with details of its plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanNotification {
    /// The notification.
    pub notification: Notice,
    /// The plan's name.
    pub plan_name: String,
    /// The plan's status.
    pub plan_status: PlanStatus,
    /// The plan's stall policy.
    pub on_stall: onward_core::policy::OnStall,
    /// Id, position and title of the step, if the notification is about one.
    pub step: Option<(StepId, u32, Option<String>)>,
    /// The review, if the notification is about one that is still pending.
    pub review: Option<Review>,
}

/// Result of a delivery attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryAttempt {
    /// Delivered.
    Sent,
    /// Failed, with the error.
    Failed(String),
}

/// Notifications to send.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClaimedNotifications {
    /// The claimed notifications.
    pub notifications: Vec<PlanNotification>,
    /// When the next notification is due.
    pub next_at: Option<Timestamp>,
}

impl Engine {
    /// Claims a tenant's due notifications of these kinds; others are marked as unwanted. For the
    /// server's operator.
    pub async fn claim_notifications(
        &self,
        tenant: &Arc<str>,
        kinds: &[Kind],
        limit: u32,
    ) -> Result<ClaimedNotifications, Error> {
        let now = self.now();
        let next = self.store.read(tenant, |tx| {
            Box::pin(async { Notifications(tx).next_notice_at().await })
        });
        // Usually nothing is due, which a read without a write transaction shows.
        let next_at: Option<Timestamp> = next.await?;
        if next_at.is_none_or(|at| at > now) {
            let notices = Vec::new();
            return Ok(ClaimedNotifications {
                notifications: notices,
                next_at,
            });
        }
        let kinds: Arc<[Kind]> = kinds.into();
        let claimed = self.store.write(tenant, move |tx| {
            let kinds = Arc::clone(&kinds);
            Box::pin(async move {
                let mut notices = Vec::new();
                for notice in Notifications(tx).notices_due(now, limit).await? {
                    notices.extend(claim(tx, notice, &kinds, now).await?);
                }
                let next_at = Notifications(tx).next_notice_at().await?;
                Ok::<ClaimedNotifications, Error>(ClaimedNotifications {
                    notifications: notices,
                    next_at,
                })
            })
        });
        claimed.await
    }

    /// Records the result of a delivery attempt. Ignored if another process has made an attempt
    /// since.
    pub async fn record_delivery_attempt(
        &self,
        tenant: &Arc<str>,
        notice: &Notice,
        tried: DeliveryAttempt,
    ) -> Result<Delivery, Error> {
        let mut notice = notice.clone();
        let now = self.now();
        match tried {
            DeliveryAttempt::Sent => finish(&mut notice, Delivery::Sent, now),
            DeliveryAttempt::Failed(error) => {
                notice.last_error = Some(error.chars().take(MAX_ERROR_CHARS).collect());
                if notice.tries >= MAX_ATTEMPTS {
                    finish(&mut notice, Delivery::GivenUp, now);
                } else {
                    notice.next_at = Some(after(now, retry_delay(notice.tries)));
                }
            }
        }
        let delivery = notice.delivery;
        let written = self.store.write(tenant, move |tx| {
            let notice = notice.clone();
            Box::pin(async move {
                Notifications(tx).change_notice(&notice, notice.tries);
                Ok::<(), onward_store::Error>(())
            })
        });
        written.await?;
        Ok(delivery)
    }

    /// The most recent notifications, newest first.
    pub async fn notifications(&self, caller: &Caller, limit: u32) -> Result<Vec<Notice>, Error> {
        caller.allow(Permission::Read)?;
        let notices = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Notifications(tx).notices(limit).await })
        });
        Ok(notices.await?)
    }

    /// Notifications after an instant, oldest first, with details of their plans.
    pub async fn notifications_after(
        &self,
        caller: &Caller,
        at: Timestamp,
        limit: u32,
    ) -> Result<Vec<PlanNotification>, Error> {
        caller.allow(Permission::Read)?;
        let notices = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move {
                let mut notifications = Vec::new();
                for notice in Notifications(tx).notices_after(at, limit).await? {
                    notifications.extend(with_plan(tx, notice).await?);
                }
                Ok::<Vec<PlanNotification>, Error>(notifications)
            })
        });
        notices.await
    }
}

/// Claims a notification, unless it is unwanted or expired.
async fn claim(
    tx: &mut Tx,
    mut notice: Notice,
    kinds: &[Kind],
    now: Timestamp,
) -> Result<Option<PlanNotification>, Error> {
    let before = notice.tries;
    if !kinds.contains(&notice.finding.kind) {
        finish(&mut notice, Delivery::Unwanted, now);
    } else if before == 0 && now.since(notice.found_at) > MAX_AGE {
        notice.last_error = Some("expired: no delivery attempt within 24 hours".to_owned());
        finish(&mut notice, Delivery::GivenUp, now);
    } else if before >= MAX_ATTEMPTS {
        // The server that made the last attempt exited before it recorded the result.
        notice.last_error = Some("the server exited during the last attempt".to_owned());
        finish(&mut notice, Delivery::GivenUp, now);
    } else {
        notice.tries = before.saturating_add(1);
        notice.next_at = Some(after(now, CLAIM_TIMEOUT));
    }
    Notifications(tx).change_notice(&notice, before);
    match notice.delivery {
        Delivery::Waiting => with_plan(tx, notice).await,
        Delivery::Sent | Delivery::GivenUp | Delivery::Unwanted => Ok(None),
    }
}

fn finish(notice: &mut Notice, delivery: Delivery, now: Timestamp) {
    notice.delivery = delivery;
    notice.next_at = None;
    notice.ended_at = Some(now);
}

fn after(now: Timestamp, span: Duration) -> Timestamp {
    now.checked_add(span).unwrap_or(Timestamp::MAX)
}

/// Adds the plan's details. `None` if the plan has been deleted.
async fn with_plan(tx: &mut Tx, notice: Notice) -> Result<Option<PlanNotification>, Error> {
    let Some(sheet) = Plans(tx).sheet(notice.plan).await? else {
        return Ok(None);
    };
    let step = match notice.finding.step {
        Some(step) => Plans(tx).sheet_of_step(step).await?,
        None => None,
    };
    let step = step.map(|(_, step)| step);
    let summary = |step: &Step| (step.id(), step.order, step.spec.title.clone());
    let open = !sheet.head.status().is_terminal();
    let review = step.clone().filter(|_| open);
    let review = review.and_then(|step| OpenReview::from_step(notice.plan, step));
    let review = review.filter(|open| Some(open.id) == notice.finding.review());
    Ok(Some(PlanNotification {
        plan_name: sheet.brief.name,
        plan_status: sheet.head.status(),
        on_stall: sheet.head.on_stall,
        step: step.as_ref().map(summary),
        review: review.map(|open| open.review),
        notification: notice,
    }))
}
