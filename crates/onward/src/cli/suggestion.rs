//! Suggestions for unknown commands: the nearest command, or the command that contains the
//! subcommand.

use clap::Command;

/// Words that users try, and the commands for them.
const SYNONYMS: [(&str, &str); 14] = [
    ("approve", "review decide"),
    ("cancel", "plan abandon"),
    ("connect", "install"),
    ("dashboard", "serve --open"),
    ("init", "install"),
    ("ls", "plan list"),
    ("open", "serve --open"),
    ("plans", "plan list"),
    ("ps", "status"),
    ("reviews", "review list"),
    ("server", "serve"),
    ("sessions", "session list"),
    ("setup", "install"),
    ("ui", "serve --open"),
];

/// The command that an unknown name at this level probably means.
pub(super) fn suggest(command: &Command, typed: &str) -> Option<String> {
    let is_root = command.get_name() == "onward";
    let synonym = SYNONYMS.iter().find(|(name, _)| *name == typed);
    if let Some((_, meant)) = synonym.filter(|_| is_root) {
        return Some((*meant).to_owned());
    }
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    if let Some(name) = nearest(typed, &names) {
        return Some(name.to_owned());
    }
    // `onward list` instead of `onward plan list`.
    let mut groups = command.get_subcommands();
    let group = groups.find(|group| group.find_subcommand(typed).is_some())?;
    Some(format!("{} {typed}", group.get_name()))
}

/// The name that a user probably meant: one that begins with the text, or one with few typing
/// errors. The first word of a name with a hyphen suffices.
pub(super) fn nearest<'a>(typed: &str, names: &[&'a str]) -> Option<&'a str> {
    let is_prefix = |name: &&&str| typed.len() >= 3 && name.starts_with(typed);
    if let Some(name) = names.iter().find(is_prefix) {
        return Some(name);
    }
    let errors = |name: &str| {
        let first = name.split('-').next().unwrap_or(name);
        let errors = [name, first].map(|word| (distance(typed, word), tolerance(word)));
        let near = errors
            .into_iter()
            .filter(|(found, allowed)| found <= allowed);
        near.map(|(found, _)| found).min()
    };
    let near = names.iter().filter_map(|name| Some((errors(name)?, *name)));
    near.min().map(|(_, name)| name)
}

/// The number of typing errors that a name of this length may have.
fn tolerance(name: &str) -> usize {
    match name.len() {
        0..=4 => 1,
        5..=8 => 2,
        _ => 3,
    }
}

/// The number of insertions, deletions, substitutions and swaps of neighbours between two words.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for (i, left) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, right) in other.iter().enumerate() {
            let substituted = rows[i][j] + usize::from(left != right);
            let mut best = substituted.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *left == other[j - 1] && one[i - 1] == *right {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn suggests_the_nearest_command_or_none() {
        let root = Cli::command();
        for (typed, meant) in [
            ("statu", Some("status")),
            ("stauts", Some("status")),
            ("transcr", Some("transcript")),
            ("list", Some("plan list")),
            ("release", Some("step release")),
            ("decide", Some("review decide")),
            ("open", Some("serve --open")),
            ("isntall", Some("install")),
            ("frobnicate", None),
            ("x", None),
        ] {
            assert_eq!(suggest(&root, typed).as_deref(), meant, "{typed}");
        }
        let agents = ["claude-code", "codex", "gemini"];
        assert_eq!(nearest("cloude", &agents), Some("claude-code"));
        assert_eq!(nearest("emacs", &agents), None);
        let plan = root.find_subcommand("plan").expect("the command exists");
        assert_eq!(suggest(plan, "shwo").as_deref(), Some("show"));
    }

    #[test]
    fn suggests_only_existing_commands() {
        for (_, meant) in SYNONYMS {
            let mut command = Cli::command();
            for word in meant.split(' ').filter(|word| !word.starts_with('-')) {
                let found = command.find_subcommand(word).cloned();
                command = found.unwrap_or_else(|| panic!("no command `{word}`"));
            }
        }
    }
}
