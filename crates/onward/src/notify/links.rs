//! Decision links of a notification. They are created when it is sent and not stored; all attempts
//! have the same expiry, because it depends on the time of the finding.

use std::time::Duration;

use onward_core::Timestamp;
use onward_core::event::Decision;
use onward_core::policy::MAX_NAME;
use onward_core::step::Review;
use onward_engine::notification::PlanNotification;

use crate::config;
use crate::decision_link::{ACTIONS, DecisionLink, LinkSigner, PATH_PREFIX};
use crate::wire::notification::{DecisionUrl, Notification};

/// Creates the links of notifications.
pub(super) struct Links {
    signer: LinkSigner,
    valid_for: Duration,
    /// The host of the webhook: the recipient of reviews without an assignee.
    channel: String,
}

impl Links {
    /// Returns `None` if links are not configured.
    pub(super) fn new(notify: &config::Notify) -> Option<Self> {
        let webhook: reqwest::Url = notify.webhook.as_ref()?.parse().ok()?;
        Some(Self {
            signer: LinkSigner::new(notify.link_secret()?)?,
            valid_for: Duration::from_secs(u64::from(notify.link_valid_hours) * 60 * 60),
            channel: webhook.host_str()?.chars().take(MAX_NAME).collect(),
        })
    }

    /// Adds the links of a pending review, unless they have expired.
    pub(super) fn add(
        &self,
        notification: &mut Notification,
        base_url: &str,
        source: &PlanNotification,
        tenant: &str,
        now: Timestamp,
    ) {
        let (Some(review), Some((step, ..))) = (&source.review, &source.step) else {
            return;
        };
        let expires_at = self.expires_at(review, source.notification.found_at);
        if expires_at <= now {
            return;
        }
        let recipient = review.options.assignee.as_ref().unwrap_or(&self.channel);
        let link = |action| DecisionLink {
            tenant: tenant.to_owned(),
            step: *step,
            review: review.id,
            action,
            recipient: recipient.clone(),
            expires_at,
        };
        let url = |action| {
            let token = self.signer.sign(&link(action))?;
            let url = format!("{base_url}{PATH_PREFIX}{token}");
            Some(DecisionUrl::new(action, review.scope, url, expires_at))
        };
        let actions = ACTIONS.into_iter();
        let actions = actions.filter(|action| Decision::on(review.scope).contains(action));
        notification.decisions = actions.filter_map(url).collect();
        notification.recipient = Some(recipient.clone());
    }

    /// The end of the period of validity, or the deadline if it is earlier. A reminder is sent at
    /// the deadline.
    fn expires_at(&self, review: &Review, found_at: Timestamp) -> Timestamp {
        let end = found_at.checked_add(self.valid_for);
        let deadline = review.options.deadline.map(|deadline| deadline.at);
        let deadline = deadline.filter(|at| *at > found_at);
        let ends = end.into_iter().chain(deadline);
        ends.min().unwrap_or(Timestamp::MAX)
    }
}
