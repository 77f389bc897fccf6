//! The table of forms: the permission and the size of each, checked before the form is read.

use onward_core::role::Permission::{
    self, AbandonPlan, CreatePlan, DecideReview, Intervene, ManageTenant, ManageTokens, Read, Work,
};

use crate::web::body::{DOCUMENT, SMALL};

/// A step's instructions: 100,000 characters of at most 12 encoded bytes.
const INSTRUCTIONS: usize = 1_280 * 1024;
/// A remark: 10,000 characters of at most 12 encoded bytes.
const REMARK: usize = 128 * 1024;

/// A form of the dashboard.
pub(super) struct Form {
    path: &'static str,
    /// The permission that it needs. The engine checks permissions that depend on the fields.
    pub(super) permission: Permission,
    /// Maximum bytes.
    pub(super) body: usize,
}

const fn form(path: &'static str, permission: Permission, body: usize) -> Form {
    Form {
        path,
        permission,
        body,
    }
}

/// All forms except the sign-in form, by the path of their route.
static FORMS: [Form; 26] = [
    form("/logout", Read, SMALL),
    form("/plans/sample", CreatePlan, SMALL),
    form("/plans/new", CreatePlan, DOCUMENT),
    form("/plans/selected", Intervene, SMALL),
    form("/plans/export", Read, SMALL),
    form("/plans/{plan}/release", Intervene, SMALL),
    form("/plans/{plan}/fail", Intervene, REMARK),
    form("/plans/{plan}/resume", Intervene, SMALL),
    form("/plans/{plan}/edit", Work, SMALL),
    form("/plans/{plan}/budget", Intervene, SMALL),
    form("/plans/{plan}/steps", Work, INSTRUCTIONS),
    form("/plans/{plan}/abandon", AbandonPlan, REMARK),
    form("/plans/{plan}/steps/{step}/requeue", Work, SMALL),
    form("/plans/{plan}/steps/{step}/skip", Intervene, SMALL),
    form("/plans/{plan}/steps/{step}/continue", Intervene, SMALL),
    form("/plans/{plan}/steps/{step}/fail", Work, REMARK),
    form("/plans/{plan}/steps/{step}/redo", Work, REMARK),
    form("/plans/{plan}/steps/{step}/fork", CreatePlan, SMALL),
    form("/plans/{plan}/steps/{step}/instruct", Work, INSTRUCTIONS),
    form("/plans/{plan}/steps/{step}/move", Work, SMALL),
    form("/reviews/{id}/decide", DecideReview, DOCUMENT),
    form(
        "/sessions/{session}/calls/{turn}/{position}/close",
        Intervene,
        SMALL,
    ),
    form("/settings/alerts/test", ManageTenant, SMALL),
    form("/settings/reviews", ManageTenant, SMALL),
    form("/settings/tokens", ManageTokens, SMALL),
    form("/settings/tokens/{token}/revoke", ManageTokens, SMALL),
];

/// A form that is not in the table.
static OTHER: Form = form("", Read, SMALL);

impl Form {
    /// The form of a route.
    pub(super) fn find(path: &str) -> &'static Form {
        FORMS
            .iter()
            .find(|form| form.path == path)
            .unwrap_or(&OTHER)
    }
}
