//! The filters and the order of the list of plans, from and to the address of the page, and the menus
//! that change them. Menus are links, so they work without the script.

use std::collections::BTreeMap;

use onward_core::Timestamp;
use onward_core::attention::Word;
use onward_core::routing::Routing;
use onward_engine::Owner;

use crate::web::pages::Fields;
use crate::web::pages::agent_name::{agent_name, directory};
use crate::web::pages::format::one_line;

/// Maximum number of options of a menu.
const MAX_OPTIONS: usize = 30;

/// The state of archived lists in the address. It is not a word: they are also unfinished lists.
pub(super) const ARCHIVED: &str = "archived";

/// The order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Activity,
    Since,
    Name,
}

impl Order {
    const ALL: [Self; 3] = [Order::Activity, Order::Since, Order::Name];

    /// The value in the address.
    const fn as_str(self) -> &'static str {
        match self {
            Order::Activity => "activity",
            Order::Since => "since",
            Order::Name => "name",
        }
    }

    pub(super) const fn label(self) -> &'static str {
        match self {
            Order::Activity => "most recent activity first",
            Order::Since => "longest in its state first",
            Order::Name => "by name",
        }
    }
}

/// The filters and the order. Empty fields are not set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) state: String,
    pub(super) who: String,
    pub(super) agent: String,
    pub(super) directory: String,
    pub(super) project: String,
    pub(super) label: String,
    /// The last activity, in days.
    pub(super) days: String,
    pub(super) query: String,
    pub(super) sort: String,
}

/// A menu of links.
pub(super) struct Menu {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    /// The selected option.
    pub(super) selected: String,
    pub(super) is_set: bool,
    pub(super) options: Vec<MenuOption>,
}

pub(super) struct MenuOption {
    pub(super) label: String,
    pub(super) link: String,
    /// Number of open plans.
    pub(super) count: Option<usize>,
    pub(super) selected: bool,
}

impl Selection {
    pub(super) fn from_fields(fields: &Fields) -> Self {
        let text = |name: &str| fields.get(name).unwrap_or_default().to_owned();
        // The addresses of earlier versions named the status.
        let state = match fields.get("state").or(fields.get("status")) {
            Some("stalled") => "stuck",
            Some("awaiting_review") => "needs_you",
            Some("completed") => "done",
            Some("executing") => "working",
            Some("planning") => "not_started",
            other => other.unwrap_or_default(),
        };
        Self {
            state: state.to_owned(),
            who: text("who"),
            agent: text("agent"),
            directory: text("directory"),
            project: text("project"),
            label: text("label"),
            days: text("days"),
            query: text("q"),
            sort: text("sort"),
        }
    }

    pub(super) fn word(&self) -> Option<Word> {
        self.state.parse().ok()
    }

    pub(super) fn text(&self) -> Option<&str> {
        Some(self.query.as_str()).filter(|text| !text.is_empty())
    }

    /// Whether the list consists of open plans only, which are in memory.
    pub(super) fn is_open_list(&self) -> bool {
        let is_open = self.state == "active" || self.word().is_some_and(|word| !word.is_ended());
        is_open && self.text().is_none()
    }

    /// Whether unfinished lists are not in the list, but in a separate section.
    pub(super) fn omits_lists(&self) -> bool {
        ["", "active"].contains(&self.state.as_str()) && self.text().is_none()
    }

    pub(super) fn is_filtered(&self) -> bool {
        *self != Self::default()
    }

    /// Whether the plans are filtered by their state, or not at all.
    pub(super) fn is_only_state(&self) -> bool {
        let is_state = |(name, _): &(&str, &str)| ["state", "sort"].contains(name);
        self.state != "active" && self.fields().iter().all(is_state)
    }

    pub(super) fn order(&self) -> Order {
        let selected = Order::ALL.into_iter().find(|one| one.as_str() == self.sort);
        selected.unwrap_or(if self.is_open_list() {
            Order::Since
        } else {
            Order::Activity
        })
    }

    /// The time since which a plan must have been active.
    fn since(&self, now: Timestamp) -> Option<Timestamp> {
        let days: i64 = self.days.parse().ok()?;
        let millis = days.checked_mul(24 * 60 * 60 * 1_000)?;
        Some(Timestamp::from_millis(now.as_millis().checked_sub(millis)?))
    }

    pub(super) fn matches(
        &self,
        owner: &Owner,
        routing: &Routing,
        acted_at: Timestamp,
        now: Timestamp,
    ) -> bool {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let origin = &owner.origin;
        is(
            &self.project,
            routing.project_key.as_deref().unwrap_or_default(),
        ) && (self.label.is_empty() || routing.labels.contains(&self.label))
            && self.since(now).is_none_or(|since| acted_at >= since)
            && is(&self.who, &owner.person)
            && is(
                &self.agent,
                client_name(origin.client.as_deref().unwrap_or_default()),
            )
            && is(
                &self.directory,
                origin.directory.as_deref().unwrap_or_default(),
            )
    }

    /// The fields that are set, in the order of the address.
    pub(super) fn fields(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("state", &self.state),
            ("who", &self.who),
            ("agent", &self.agent),
            ("directory", &self.directory),
            ("project", &self.project),
            ("label", &self.label),
            ("days", &self.days),
            ("q", &self.query),
            ("sort", &self.sort),
        ];
        let set = all.into_iter().filter(|(_, value)| !value.is_empty());
        set.map(|(name, value)| (name, value.as_str())).collect()
    }

    /// The address of the list with one field changed. The first field is the changed one.
    pub(super) fn link(&self, name: &str, value: &str) -> String {
        let kept = self.fields().into_iter().filter(|(kept, _)| *kept != name);
        let changed = std::iter::once((name, value)).filter(|(_, value)| !value.is_empty());
        let encode = |(name, value): (&str, &str)| {
            let value = askama::filters::urlencode_strict(value).ok()?;
            Some(format!("{name}={value}"))
        };
        let fields: Vec<String> = changed.chain(kept).filter_map(encode).collect();
        if fields.is_empty() {
            "/plans".to_owned()
        } else {
            format!("/plans?{}", fields.join("&"))
        }
    }

    /// The menus for the owners, projects and labels of the open plans.
    pub(super) fn menus<'o>(
        &self,
        plans: impl Iterator<Item = (&'o Owner, &'o Routing)>,
    ) -> Vec<Menu> {
        let mut counts: [BTreeMap<&str, usize>; 5] = Default::default();
        let [people, agents, directories, projects, labels] = &mut counts;
        for (owner, routing) in plans {
            let origin = &owner.origin;
            if let Some(project) = &routing.project_key {
                *projects.entry(project.as_str()).or_default() += 1;
            }
            for label in &routing.labels {
                *labels.entry(label.as_str()).or_default() += 1;
            }
            *people.entry(owner.person.as_str()).or_default() += 1;
            if let Some(client) = &origin.client {
                *agents.entry(client_name(client)).or_default() += 1;
            }
            if let Some(directory) = &origin.directory {
                *directories.entry(directory.as_str()).or_default() += 1;
            }
        }
        let [people, agents, directories, projects, labels] = counts;
        let person = |name: &str| one_line(name, 40);
        let mut menus = vec![
            self.menu(("who", "Owner"), &self.who, people, person),
            self.menu(("agent", "Agent"), &self.agent, agents, agent_name),
            self.menu(
                ("directory", "Directory"),
                &self.directory,
                directories,
                directory,
            ),
            self.menu(("project", "Project"), &self.project, projects, person),
            self.menu(("label", "Label"), &self.label, labels, person),
        ];
        menus.retain(|menu| menu.options.len() > 1);
        menus.push(self.time_menu());
        menus.push(self.order_menu());
        menus
    }

    fn menu<'v>(
        &self,
        (id, name): (&'static str, &'static str),
        selected: &'v str,
        mut values: BTreeMap<&'v str, usize>,
        label: impl Fn(&str) -> String,
    ) -> Menu {
        if !selected.is_empty() {
            values.entry(selected).or_default();
        }
        let option = |value: &str, label: String, count| MenuOption {
            label,
            link: self.link(id, value),
            count,
            selected: value == selected,
        };
        let any = option("", "Any".to_owned(), None);
        let known = values
            .iter()
            .map(|(value, count)| option(value, label(value), Some(*count)));
        Menu {
            id,
            name,
            selected: if selected.is_empty() {
                "any".to_owned()
            } else {
                label(selected)
            },
            is_set: !selected.is_empty(),
            options: std::iter::once(any)
                .chain(known)
                .take(MAX_OPTIONS)
                .collect(),
        }
    }

    fn time_menu(&self) -> Menu {
        let options = [
            ("", "any time"),
            ("1", "last 24 hours"),
            ("7", "last 7 days"),
            ("30", "last 30 days"),
        ];
        let label = options.iter().find(|(days, _)| *days == self.days);
        let option = |(days, label): (&str, &str)| MenuOption {
            label: label.to_owned(),
            link: self.link("days", days),
            count: None,
            selected: days == self.days,
        };
        Menu {
            id: "days",
            name: "Active",
            selected: match label {
                Some((_, label)) => (*label).to_owned(),
                None => format!("last {} days", one_line(&self.days, 10)),
            },
            is_set: !self.days.is_empty(),
            options: options.map(option).into(),
        }
    }

    fn order_menu(&self) -> Menu {
        let order = self.order();
        let option = |one: Order| MenuOption {
            label: one.label().to_owned(),
            link: self.link("sort", one.as_str()),
            count: None,
            selected: one == order,
        };
        Menu {
            id: "sort",
            name: "Sort",
            selected: order.label().to_owned(),
            is_set: !self.sort.is_empty(),
            options: Order::ALL.map(option).into(),
        }
    }
}

/// The name of a client without its version.
fn client_name(client: &str) -> &str {
    match client.rsplit_once(' ') {
        Some((name, version)) if version.starts_with(|char: char| char.is_ascii_digit()) => name,
        Some(_) | None => client,
    }
}

#[cfg(test)]
mod tests {
    use onward_engine::RequestOrigin;

    use super::*;

    fn owner(person: &str, client: &str, directory: &str) -> Owner {
        Owner {
            person: person.to_owned(),
            origin: RequestOrigin {
                client: Some(client.to_owned()),
                host: None,
                directory: Some(directory.to_owned()),
            },
        }
    }

    #[test]
    fn filters_match_agents_without_their_version() {
        let ana = owner("ana", "claude-code 2.1.0", "/src/infra");
        let selection = Selection {
            agent: "claude-code".to_owned(),
            directory: "/src/infra".to_owned(),
            ..Selection::default()
        };
        let at = Timestamp::from_millis(0);
        let matches = |owner: &Owner| selection.matches(owner, &Routing::default(), at, at);
        assert!(matches(&ana));
        assert!(!matches(&owner("ana", "codex 1.0", "/src/infra")));
        assert!(!matches(&owner("ana", "claude-code 2.1.0", "/src/web")));
        assert_eq!(client_name("my agent"), "my agent");
    }

    #[test]
    fn filters_match_the_project_a_label_and_the_last_activity() {
        let ana = owner("ana", "codex 1.0", "/a");
        let routing = Routing {
            project_key: Some("site".to_owned()),
            labels: vec!["urgent".to_owned()],
            ..Routing::default()
        };
        let day = |days: i64| Timestamp::from_millis(days * 24 * 60 * 60 * 1_000);
        for (project, label, days, expected) in [
            ("site", "urgent", "7", true),
            ("site", "", "", true),
            ("other", "", "", false),
            ("", "other", "", false),
            ("", "", "1", false),
        ] {
            let selection = Selection {
                project: project.to_owned(),
                label: label.to_owned(),
                days: days.to_owned(),
                ..Selection::default()
            };
            let matches = selection.matches(&ana, &routing, day(15), day(20));
            assert_eq!(matches, expected, "{project} {label} {days}");
        }
    }

    #[test]
    fn links_keep_the_other_fields_and_encode_values() {
        let selection = Selection {
            state: "stuck".to_owned(),
            who: "ana & ben".to_owned(),
            ..Selection::default()
        };
        assert_eq!(
            selection.link("sort", "name"),
            "/plans?sort=name&state=stuck&who=ana%20%26%20ben"
        );
        assert_eq!(selection.link("who", ""), "/plans?state=stuck");
        assert_eq!(Selection::default().link("state", ""), "/plans");
    }

    #[test]
    fn menus_have_the_number_of_open_plans_and_the_selected_value() {
        let owners = [
            owner("ana", "codex 1", "/a"),
            owner("ana", "claude-code 2", "/a"),
        ];
        let selection = Selection {
            who: "ben".to_owned(),
            ..Selection::default()
        };
        let routing = Routing::default();
        let menus = selection.menus(owners.iter().map(|owner| (owner, &routing)));
        let names: Vec<_> = menus.iter().map(|menu| menu.name).collect();
        assert_eq!(names, ["Owner", "Agent", "Directory", "Active", "Sort"]);
        let people: Vec<_> = menus[0]
            .options
            .iter()
            .map(|option| (option.label.as_str(), option.count, option.selected))
            .collect();
        assert_eq!(
            people,
            [
                ("Any", None, false),
                ("ana", Some(2), false),
                ("ben", Some(0), true)
            ]
        );
    }
}
