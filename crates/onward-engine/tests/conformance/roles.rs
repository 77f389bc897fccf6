//! Authorization: each engine call in each role is allowed or forbidden as the core's table
//! defines.

use onward_core::id::{ArtifactId, OutputId, SkillExecutionId};
use onward_core::role::{Forbidden, Permission, TenantPolicy};
use onward_core::{PlanId, Refusal, Role, StepId};
use onward_engine::{Caller, Error};

use crate::engine_calls::{Ids, create_calls, list_calls, read_calls, update_calls};
use crate::harness::Harness;
use crate::on_both_databases;

async fn allows_each_call_only_to_roles_with_its_permissions(harness: &Harness) {
    let missing = Ids {
        plan: PlanId::from_u128(1),
        step: StepId::from_u128(1),
        token: "no token".to_owned(),
        skill: SkillExecutionId::from_u128(1),
        session: "no session".to_owned(),
        artifact: ArtifactId::from_u128(1),
        output: OutputId::from_u128(1),
    };
    let calls = || {
        [create_calls(), update_calls(), read_calls(), list_calls()]
            .into_iter()
            .flatten()
    };
    for role in Role::ALL {
        for agents_decide_reviews in [false, true] {
            let policy = TenantPolicy {
                agents_decide_reviews,
            };
            let caller = Caller {
                policy,
                ..harness.caller_with_role(role)
            };
            for call in calls() {
                let mut needed = call.permissions.iter();
                // An agent may decide the review of a gate; the core checks it for each review.
                let depends_on_review = |needed: &Permission| {
                    role == Role::Agent && *needed == Permission::DecideReview
                };
                let lacking =
                    needed.find(|needed| !role.may(**needed, policy) && !depends_on_review(needed));
                let expected = lacking.map(|permission| {
                    Refusal::Forbidden(Forbidden {
                        role,
                        permission: *permission,
                    })
                });
                let result = (call.make)(harness.engine.clone(), caller.clone(), missing.clone());
                let forbidden = match result.await {
                    Err(Error::Rejected { refusal, .. }) => {
                        Some(refusal).filter(|refusal| matches!(refusal, Refusal::Forbidden(_)))
                    }
                    Ok(_) | Err(_) => None,
                };
                assert_eq!(forbidden, expected, "{} as {role}", call.name);
            }
        }
    }
}

async fn only_an_owner_revokes_an_owners_token(harness: &Harness) {
    let created = harness
        .engine
        .create_token(&harness.me, "owner", Role::Owner, None)
        .await;
    created.unwrap();
    let rejected = harness
        .engine
        .revoke_token(&harness.caller_with_role(Role::Admin), "owner")
        .await;
    assert_eq!(crate::operations::code(rejected), "forbidden");
    harness
        .engine
        .revoke_token(&harness.me, "owner")
        .await
        .unwrap();
}

async fn agents_decide_reviews_only_in_tenants_that_allow_it(harness: &Harness) {
    let local = Caller::local("me");
    let tenants = harness.engine.tenants().await.unwrap();
    let tenant = |name: &str| tenants.iter().find(|tenant| &*tenant.name == name).unwrap();
    assert!(tenant(&local.tenant).agents_decide_reviews);
    assert!(!tenant(&harness.me.tenant).agents_decide_reviews);
    let operator = harness.engine.operator(&local.tenant, "me").await.unwrap();
    assert_eq!(operator.policy, TenantPolicy::LOCAL);
}

async fn an_owner_lets_agents_decide_reviews(harness: &Harness) {
    let engine = &harness.engine;
    let token = engine.create_token(&harness.me, "agent", Role::Agent, None);
    let (secret, _) = token.await.unwrap();
    for allowed in [true, false] {
        let admin = harness.caller_with_role(Role::Admin);
        let denied = engine.set_agents_decide_reviews(&admin, allowed).await;
        assert_eq!(crate::operations::code(denied), "forbidden");
        // Repeating the call changes and logs nothing.
        for _ in 0..2 {
            let set = engine.set_agents_decide_reviews(&harness.me, allowed);
            assert_eq!(set.await.unwrap().agents_decide_reviews, allowed);
        }
        let agent = engine.authenticate(&secret).await.unwrap();
        assert_eq!(agent.policy.agents_decide_reviews, allowed);
        let line = &engine.tenant_log(&harness.me, 1).await.unwrap()[0];
        assert_eq!(line.action, "tenant_changed");
        assert_eq!(line.details["agentsDecideReviews"], allowed);
    }
    let log = engine.tenant_log(&harness.me, 9).await.unwrap();
    let changes = log.iter().filter(|line| line.action == "tenant_changed");
    assert_eq!(changes.count(), 2);
}

on_both_databases![
    allows_each_call_only_to_roles_with_its_permissions,
    only_an_owner_revokes_an_owners_token,
    agents_decide_reviews_only_in_tenants_that_allow_it,
    an_owner_lets_agents_decide_reviews,
];
