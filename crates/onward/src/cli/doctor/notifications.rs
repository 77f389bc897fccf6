//! Checks the delivery of notifications, if a webhook is configured.

use onward_engine::{Delivery, Engine, Error, Notice};

use super::findings::{Findings, Passed};
use super::{Check, operator};
use crate::cli::Context;
use crate::output::format;

const NOTIFICATIONS: &str = "notifications";
/// The number of recent notifications to check, per tenant.
const MAX_NOTIFICATIONS: u32 = 50;

pub(super) async fn check(cx: &Context, engine: &Engine) -> Result<Vec<Check>, Error> {
    let notify = &cx.config.notify;
    let Some(webhook) = notify.display_webhook() else {
        return Ok(Vec::new());
    };
    if notify.secret.is_none() {
        let message = format!("notifications to `{webhook}` are off: no secret to sign them");
        let hint = "set `ONWARD_NOTIFY__SECRET`, or `secret` in `[notify]`";
        return Ok(vec![Check::failed(NOTIFICATIONS, message, hint)]);
    }
    let mut passed = Passed::new(NOTIFICATIONS);
    let hint = "check that the webhook is reachable and returns a status from 200 to 299";
    let mut failed = Findings::new(NOTIFICATIONS, hint);
    for tenant in engine.tenants().await? {
        let operator = operator(engine, &tenant.name).await?;
        let recent = engine.notifications(&operator, MAX_NOTIFICATIONS).await?;
        let is_undelivered = |notice: &&Notice| match notice.delivery {
            Delivery::GivenUp => true,
            Delivery::Waiting => notice.last_error.is_some(),
            Delivery::Sent | Delivery::Unwanted => false,
        };
        let undelivered: Vec<&Notice> = recent.iter().filter(is_undelivered).collect();
        let Some(last) = undelivered.first() else {
            let sent = recent.iter().filter(|one| one.delivery == Delivery::Sent);
            passed.add(&tenant.name, [sent.count() as u64]);
            continue;
        };
        let message = format!(
            "{} not delivered to `{webhook}`: {}",
            format::count(undelivered.len() as u64, "notification", "notifications"),
            last.last_error.as_deref().unwrap_or("no attempt yet"),
        );
        failed.add(Some(&format!("tenant `{}`", tenant.name)), &message);
    }
    let mut checks = passed.into_checks(|[sent]| {
        let sent = format::count(sent, "notification", "notifications");
        format!("{sent} sent to `{webhook}`")
    });
    checks.extend(failed.into_checks());
    Ok(checks)
}
