//! Checks with many results: the first problems and the number of each kind, and one line for many
//! tenants that passed.

use std::collections::BTreeMap;

use super::Check;
use crate::output::format;

/// Maximum number of lines for the problems of one check, for their kinds, and for tenants.
const MAX_LINES: usize = 10;

/// The problems that one check finds.
pub(super) struct Findings {
    check: &'static str,
    /// The next action.
    hint: &'static str,
    first: Vec<String>,
    /// Number of problems per kind.
    kinds: BTreeMap<String, u64>,
}

impl Findings {
    pub(super) fn new(check: &'static str, hint: &'static str) -> Self {
        Self {
            check,
            hint,
            first: Vec::new(),
            kinds: BTreeMap::new(),
        }
    }

    /// Adds a problem, and what it affects: a tenant, a plan.
    pub(super) fn add(&mut self, subject: Option<&str>, problem: &str) {
        if self.first.len() < MAX_LINES {
            self.first.push(match subject {
                Some(subject) => format!("{subject}: {problem}"),
                None => problem.to_owned(),
            });
        }
        *self.kinds.entry(kind(problem)).or_default() += 1;
    }

    /// The first problems; if there are more, also the number of each kind.
    pub(super) fn into_checks(self) -> Vec<Check> {
        let Self {
            check,
            hint,
            mut first,
            kinds,
        } = self;
        let all: u64 = kinds.values().sum();
        if all > first.len() as u64 {
            let mut kinds: Vec<(String, u64)> = kinds.into_iter().collect();
            kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let other: u64 = kinds.iter().skip(MAX_LINES).map(|(_, count)| count).sum();
            let line = |(kind, count): &(String, u64)| format!("{count} in total: {kind}");
            first.extend(kinds.iter().take(MAX_LINES).map(line));
            if other > 0 {
                first.push(format!("{other} in total: other problems"));
            }
        }
        let failed = |message| Check::failed(check, message, hint);
        first.into_iter().map(failed).collect()
    }
}

/// A problem without its names and values, which are in backticks.
fn kind(problem: &str) -> String {
    let parts = problem.split('`').enumerate();
    let parts = parts.map(|(place, part)| if place % 2 == 0 { part } else { "`…`" });
    parts.collect()
}

/// The tenants that passed a check, each with its counts.
pub(super) struct Passed<const N: usize> {
    check: &'static str,
    tenants: Vec<(String, [u64; N])>,
}

impl<const N: usize> Passed<N> {
    pub(super) fn new(check: &'static str) -> Self {
        Self {
            check,
            tenants: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, tenant: &str, counts: [u64; N]) {
        self.tenants.push((tenant.to_owned(), counts));
    }

    /// One line per tenant, or one with the sums for many tenants.
    pub(super) fn into_checks(self, describe: impl Fn([u64; N]) -> String) -> Vec<Check> {
        let Self { check, tenants } = self;
        if tenants.len() <= MAX_LINES {
            let line = |(tenant, counts)| format!("tenant `{tenant}`: {}", describe(counts));
            let lines = tenants.into_iter().map(line);
            return lines.map(|line| Check::passed(check, line)).collect();
        }
        let mut sums = [0; N];
        for (_, counts) in &tenants {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        let number = format::count(tenants.len() as u64, "tenant", "tenants");
        let message = format!("{number}: {}", describe(sums));
        vec![Check::passed(check, message)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_first_ten_problems_and_the_number_of_each_kind() {
        let mut few = Findings::new("plans", "hint");
        few.add(Some("plan 1"), "the head differs");
        few.add(None, "table `plans` is corrupt");
        let messages = |checks: Vec<Check>| -> Vec<String> {
            assert!(checks.iter().all(|check| !check.ok && check.hint.is_some()));
            checks.into_iter().map(|check| check.message).collect()
        };
        assert_eq!(
            messages(few.into_checks()),
            ["plan 1: the head differs", "table `plans` is corrupt"]
        );
        assert!(Findings::new("plans", "hint").into_checks().is_empty());

        let mut many = Findings::new("plans", "hint");
        for plan in 0..7_000 {
            many.add(
                Some(&format!("plan {plan}")),
                &format!("step `{plan}` differs"),
            );
            many.add(Some(&format!("plan {plan}")), "the head differs");
        }
        many.add(None, "table `plans` is corrupt");
        let lines = messages(many.into_checks());
        assert_eq!(lines.len(), MAX_LINES + 3);
        assert_eq!(
            lines[MAX_LINES..],
            [
                "7000 in total: step `…` differs",
                "7000 in total: the head differs",
                "1 in total: table `…` is corrupt"
            ]
        );
    }

    #[test]
    fn limits_the_number_of_kinds() {
        let mut many = Findings::new("plans", "hint");
        for problem in 0..100 {
            many.add(None, &format!("problem {problem}"));
        }
        let checks = many.into_checks();
        assert_eq!(checks.len(), 2 * MAX_LINES + 1);
        assert!(checks.last().unwrap().message.starts_with("90 "));
    }

    #[test]
    fn sums_the_counts_of_many_tenants() {
        let passed = |tenants: usize| {
            let mut passed = Passed::new("plans");
            for tenant in 0..tenants {
                passed.add(&format!("t{tenant}"), [1, 2]);
            }
            let checks = passed.into_checks(|[plans, events]| format!("{plans}, {events}"));
            let messages = checks.into_iter().map(|check| check.message);
            messages.collect::<Vec<_>>()
        };
        assert!(passed(0).is_empty());
        assert_eq!(passed(2), ["tenant `t0`: 1, 2", "tenant `t1`: 1, 2"]);
        let many = passed(10_025);
        assert_eq!(many.len(), 1);
        assert!(many[0].ends_with(": 10025, 20050"), "{many:?}");
    }
}
