//! Every hint names only calls that its caller has.

use clap::CommandFactory;
use onward_core::command::StepRef;
use onward_core::condition::Condition;
use onward_core::id::{BranchId, StepId};
use onward_core::plan::{IllegalPlanTransition, PlanCause};
use onward_core::refusal::{BadDependency, NotRedoable, NotRemovable};
use onward_core::role::{Forbidden, Permission, TenantPolicy};
use onward_core::step::{IllegalStepTransition, StepCause};
use onward_core::{Code, PlanStatus, Refusal, Role, StepStatus};
use onward_engine::{Error, ObjectKind};

use super::{Interface, ToolSet, USE_CASES, render, render_error};
use crate::{tools, web, wire};

const INTERFACES: [Interface; 6] = [
    Interface::Mcp(ToolSet::All),
    Interface::Mcp(ToolSet::Core),
    Interface::Mcp(ToolSet::Plan),
    Interface::Api,
    Interface::CommandLine,
    Interface::Page,
];

/// A refusal per variant and hint.
fn refusals() -> Vec<Refusal> {
    let reference = |path: &str| Refusal::InvalidStepReference {
        path: path.to_owned(),
        actual: "order 9".to_owned(),
        expected: "1 to 3".to_owned(),
    };
    let mut all = vec![
        Refusal::InvalidInput(Vec::new()),
        Refusal::InvalidCondition {
            path: "branch.conditionExpression".to_owned(),
            error: Condition::parse("1 +").expect_err("invalid"),
        },
        Refusal::InvalidDependency(BadDependency::Unknown {
            step: 1,
            needed: StepRef::Order(9),
        }),
        reference("branchingConditions[0].afterStepOrder"),
        reference("insertAfterOrder"),
        Refusal::StepNotFound(StepId::from_u128(1)),
        Refusal::IllegalStepTransition(IllegalStepTransition {
            from: StepStatus::Completed,
            cause: StepCause::Complete,
        }),
        Refusal::StepNotInProgress(StepStatus::Pending),
        Refusal::StepNotPending(StepStatus::Completed),
        Refusal::StepIsTerminal(StepStatus::Completed),
        Refusal::StepNotRemovable(NotRemovable::NotPending(StepStatus::Completed)),
        Refusal::StepNotRemovable(NotRemovable::NeededByBranch(BranchId::from_u128(1))),
        Refusal::StepNotRemovable(NotRemovable::OnlyStep),
        Refusal::StepNotRemovable(NotRemovable::Supersedes(StepId::from_u128(1))),
        Refusal::StepNotRedoable(NotRedoable::NotEnded(StepStatus::Pending)),
        Refusal::StepNotRedoable(NotRedoable::Superseded(StepId::from_u128(1))),
        Refusal::IncompleteStepList {
            missing: Vec::new(),
            unknown: Vec::new(),
            duplicates: Vec::new(),
        },
        Refusal::ClaimSuperseded {
            attempt: 2,
            status: StepStatus::InProgress,
        },
        Refusal::FeedbackRequired,
        Refusal::LimitExceeded {
            what: "steps",
            limit: 1,
            actual: 2,
        },
    ];
    for status in PlanStatus::ALL {
        all.push(Refusal::IllegalPlanTransition(IllegalPlanTransition {
            from: status,
            cause: PlanCause::RequestReview,
        }));
        all.push(Refusal::PlanNotModifiable(status));
        all.push(Refusal::PlanIsTerminal(status));
    }
    let role = Role::Viewer;
    let forbidden = Permission::ALL.map(|permission| Forbidden { role, permission });
    all.extend(forbidden.map(Refusal::Forbidden));
    all
}

fn hints() -> Vec<String> {
    let not_found = |kind| Error::NotFound {
        kind,
        name: "x".to_owned(),
    };
    let step = "x".to_owned();
    let mut errors: Vec<Error> = refusals().into_iter().map(Error::from).collect();
    errors.extend([
        Error::PlanNotFound("x".to_owned()),
        Error::StepNotFound { step, kept: None },
        Error::Ambiguous {
            text: "x".to_owned(),
            kind: "plans",
            matches: Vec::new(),
        },
        Error::Unauthorized("x"),
    ]);
    errors.extend(ObjectKind::ALL.map(not_found));
    let mut hints: Vec<String> = errors.iter().map(|error| error.hint().to_owned()).collect();
    hints.push(tools::ToolError::internal("x").hint);
    hints.extend(wire::MORE.map(str::to_owned));
    hints.push(tools::MORE.to_owned());
    hints
}

/// The texts in backticks.
fn quoted(hint: &str) -> impl Iterator<Item = &str> {
    hint.split('`').skip(1).step_by(2)
}

fn is_command(words: &str) -> bool {
    let mut command = crate::cli::Cli::command();
    let names = words.split(' ').skip(1);
    for name in names.take_while(|name| name.starts_with(|c: char| c.is_ascii_lowercase())) {
        match command.find_subcommand(name) {
            Some(found) => command = found.clone(),
            None => return false,
        }
    }
    true
}

#[test]
fn every_hint_names_only_calls_that_its_caller_has() {
    for interface in INTERFACES {
        for hint in hints() {
            let hint = render(&hint, interface, None);
            for name in USE_CASES.iter().map(|case| case.name) {
                assert!(
                    !hint.contains(&format!("{{{name}}}")),
                    "{interface:?}: {hint}"
                );
            }
            for quoted in quoted(&hint) {
                if let Some(tool) = tools::find(quoted) {
                    let offered = matches!(interface, Interface::Mcp(set) if set.contains(tool));
                    assert!(offered, "{interface:?}: {hint}");
                }
                if quoted.starts_with("onward ") {
                    assert_eq!(interface, Interface::CommandLine, "{hint}");
                    assert!(is_command(quoted), "{hint}");
                }
                if quoted.contains(" /api/") {
                    assert_eq!(interface, Interface::Api, "{hint}");
                    let known = tools::all()
                        .iter()
                        .filter_map(|tool| web::route_of(tool.name));
                    let mut known = known.chain(web::route_of("list_sessions"));
                    assert!(known.any(|route| route == quoted), "{hint}");
                }
            }
        }
    }
}

#[test]
fn every_alias_calls_a_core_tool_and_has_a_new_name() {
    for (alias, name) in super::ALIASES {
        let tool = tools::find(name).expect("tool exists");
        assert!(tool.in_core, "{name}");
        assert!(tools::find(alias).is_none(), "{alias}");
        assert_eq!(
            ToolSet::Plan.resolve(ToolSet::Plan.name_of(tool.name)),
            name
        );
    }
    for tool in tools::all().iter().filter(|tool| tool.in_core) {
        let name = ToolSet::Plan.name_of(tool.name);
        assert!(!name.contains("research"), "{name}");
    }
}

#[test]
fn every_use_case_has_a_name_in_every_interface() {
    for case in &USE_CASES {
        for interface in INTERFACES {
            let name = render(&format!("{{{}}}", case.name), interface, None);
            let is_replaced = !name.is_empty() && !name.starts_with('{');
            assert!(is_replaced, "{} for {interface:?}", case.name);
        }
    }
}

#[test]
fn a_caller_that_may_not_decide_is_referred_to_the_review_page() {
    let forbidden = Refusal::Forbidden(Forbidden {
        role: Role::Agent,
        permission: Permission::DecideReview,
    });
    let base = Some("https://onward.example.org/");
    for interface in [Interface::Mcp(ToolSet::Core), Interface::Api] {
        let hint = render(forbidden.hint(), interface, base);
        assert!(
            hint.contains("https://onward.example.org/reviews"),
            "{hint}"
        );
    }
    assert_eq!(forbidden.code(), Code::Forbidden);
}

#[test]
fn a_forbidden_call_names_the_roles_that_may_do_it() {
    let policy = TenantPolicy::default();
    for permission in Permission::ALL {
        if permission == Permission::DecideReview || permission == Permission::Read {
            continue;
        }
        let role = Role::Viewer;
        let hint = Refusal::Forbidden(Forbidden { role, permission }).hint();
        for role in [Role::Owner, Role::Admin, Role::Member, Role::Agent] {
            let named = hint.contains(&format!("{} ", role.as_str()))
                || hint.contains(&format!("{},", role.as_str()));
            assert_eq!(named, role.may(permission, policy), "{role}: {hint}");
        }
    }
}

#[test]
fn commands_are_for_the_operator() {
    let hint = "run `onward doctor` to check the database";
    for interface in [
        Interface::Mcp(ToolSet::All),
        Interface::Api,
        Interface::Page,
    ] {
        let rendered = render_error(hint, true, interface, None);
        assert_eq!(rendered, format!("ask the operator: {hint}"));
        assert_eq!(render_error(hint, false, interface, None), hint);
    }
    assert_eq!(render_error(hint, true, Interface::CommandLine, None), hint);
}
