//! The caller's identity: the resource `onward://user/profile`.

use onward_core::role::Permission;
use onward_engine::Caller;
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Profile {
    user: String,
    tenant: String,
    role: &'static str,
    may_decide_reviews: bool,
}

impl Profile {
    pub(crate) fn new(caller: &Caller) -> Self {
        Self {
            user: caller.name.clone(),
            tenant: caller.tenant.to_string(),
            role: caller.role.as_str(),
            may_decide_reviews: caller.allow(Permission::DecideReview).is_ok(),
        }
    }
}
