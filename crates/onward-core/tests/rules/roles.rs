//! The permission table, repeated here.

use onward_core::role::{Forbidden, Permission, Role, TenantPolicy};
use onward_core::{Code, Refusal};

/// One letter per role: owner, admin, member, agent, viewer. `?` depends on the tenant.
const TABLE: [(Permission, &str); 11] = [
    (Permission::Read, "o a m g v"),
    (Permission::CreatePlan, "o a m g -"),
    (Permission::Work, "o a m g -"),
    (Permission::Record, "o a m g -"),
    (Permission::DecideReview, "o a m ? -"),
    (Permission::Intervene, "o a m - -"),
    (Permission::AbandonPlan, "o a m - -"),
    (Permission::DeletePlan, "o - - - -"),
    (Permission::ManageTokens, "o a - - -"),
    (Permission::ManageMembers, "o a - - -"),
    (Permission::ManageTenant, "o - - - -"),
];

#[test]
fn roles_match_the_permission_table() {
    assert_eq!(TABLE.map(|(permission, _)| permission), Permission::ALL);
    for (permission, row) in TABLE {
        for (role, cell) in Role::ALL.into_iter().zip(row.split(' ')) {
            for agents_decide_reviews in [false, true] {
                let expected = match cell {
                    "-" => false,
                    "?" => agents_decide_reviews,
                    _ => true,
                };
                let tenant = TenantPolicy {
                    agents_decide_reviews,
                };
                assert_eq!(
                    role.may(permission, tenant),
                    expected,
                    "{role} {permission}"
                );
                assert_eq!(role.allow(permission, tenant).is_ok(), expected);
            }
        }
    }
}

#[test]
fn agents_can_decide_reviews_by_default_only_in_the_local_tenant() {
    assert!(!Role::Agent.may(Permission::DecideReview, TenantPolicy::default()));
    assert!(Role::Agent.may(Permission::DecideReview, TenantPolicy::LOCAL));
}

#[test]
fn a_rejection_contains_role_and_permission() {
    let refusal = Role::Viewer
        .allow(Permission::CreatePlan, TenantPolicy::LOCAL)
        .unwrap_err();
    assert_eq!(
        refusal,
        Forbidden {
            role: Role::Viewer,
            permission: Permission::CreatePlan
        }
    );
    assert_eq!(Refusal::from(refusal).code(), Code::Forbidden);
}

#[test]
fn roles_parse_from_their_display_text() {
    for role in Role::ALL {
        assert_eq!(role.to_string().parse(), Ok(role));
    }
    assert!("root".parse::<Role>().is_err());
}
