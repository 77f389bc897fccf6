//! Each call in each role: allowed or forbidden exactly as the core's table says.

use onward_core::id::SkillExecutionId;
use onward_core::role::{Forbidden, TenantPolicy};
use onward_core::{PlanId, Refusal, Role, StepId};
use onward_engine::{Caller, Error};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::table::{Ids, changes, lists, makers, reads};

async fn each_role_may_do_exactly_what_the_table_says(desk: &Desk) {
    let nothing = Ids {
        plan: PlanId::from_u128(1),
        step: StepId::from_u128(1),
        token: "no token".to_owned(),
        skill: SkillExecutionId::from_u128(1),
        session: "no session".to_owned(),
    };
    let calls = || {
        [makers(), changes(), reads(), lists()]
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
                ..desk.role(role)
            };
            for call in calls() {
                let refused = call.needs.iter().find(|needed| !role.may(**needed, policy));
                let expected = refused.map(|needed| {
                    Refusal::Forbidden(Forbidden {
                        role,
                        permission: *needed,
                    })
                });
                let made = (call.make)(desk.engine.clone(), caller.clone(), nothing.clone());
                let forbidden = match made.await {
                    Err(Error::Refused { refusal, .. }) => {
                        Some(refusal).filter(|refusal| matches!(refusal, Refusal::Forbidden(_)))
                    }
                    Ok(_) | Err(_) => None,
                };
                assert_eq!(forbidden, expected, "{} as {role}", call.name);
            }
        }
    }
}

async fn only_an_owner_takes_an_owner_s_token_back(desk: &Desk) {
    let made = desk
        .engine
        .create_token(&desk.me, "owner", Role::Owner, None)
        .await;
    made.unwrap();
    let refused = desk
        .engine
        .revoke_token(&desk.role(Role::Admin), "owner")
        .await;
    assert_eq!(crate::verbs::code(refused), "forbidden");
    desk.engine.revoke_token(&desk.me, "owner").await.unwrap();
}

async fn an_agent_decides_reviews_where_the_tenant_allows_it(desk: &Desk) {
    let local = Caller::local("me");
    let tenants = desk.engine.tenants().await.unwrap();
    let found = |name: &str| tenants.iter().find(|tenant| &*tenant.name == name).unwrap();
    assert!(found(&local.tenant).agents_decide_reviews);
    assert!(!found(&desk.me.tenant).agents_decide_reviews);
    let operator = desk.engine.operator(&local.tenant, "me").await.unwrap();
    assert_eq!(operator.policy, TenantPolicy::LOCAL);
}

on_both_databases![
    each_role_may_do_exactly_what_the_table_says,
    only_an_owner_takes_an_owner_s_token_back,
    an_agent_decides_reviews_where_the_tenant_allows_it,
];
