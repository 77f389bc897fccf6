//! All configuration keys for readers: the example file in `onward config --help`, and
//! `docs/configuration.md`, which a test generates.

use std::fmt::Write;

use super::keys::{DefaultValue, KEYS, Key, Table};
use super::kind::Kind;

/// The width of an assignment in the example, before its comment.
const WIDTH: usize = 30;

/// The keys by table.
fn tables() -> impl Iterator<Item = (&'static Table, &'static [Key])> {
    let tables = KEYS.chunk_by(|one, next| one.table.prefix == next.table.prefix);
    tables.filter_map(|keys| Some((keys.first()?.table, keys)))
}

/// An example file with all keys. Each line begins with `indent`.
pub(crate) fn example(indent: &str) -> String {
    let mut text = String::new();
    for (table, keys) in tables() {
        if !table.prefix.is_empty() {
            let head = format!("[{}]", table.name());
            let _ = writeln!(text, "\n{indent}{head:<WIDTH$}  # {}", table.help);
        }
        for key in keys {
            let assignment = if let Kind::ApiKey = key.kind {
                format!("# {}=…", key.variable("__"))
            } else {
                let value = key.kind.toml_value(key.example_text());
                format!("{} = {value}", key.name())
            };
            let more = match (&key.kind, key.default) {
                (Kind::Choice(choices), _) => format!(": {}", choices().join(", ")),
                (Kind::Secret(2..), _) => format!("; {}", key.kind.expected()),
                (_, DefaultValue::Fixed(_) | DefaultValue::Unset("none")) => String::new(),
                (_, DefaultValue::Unset(words)) => format!("; default: {words}"),
            };
            let _ = writeln!(text, "{indent}{assignment:<WIDTH$}  # {}{more}", key.help);
        }
    }
    text
}

impl Key {
    fn example_text(&self) -> &'static str {
        match (self.example, self.default) {
            (Some(text), _) | (None, DefaultValue::Fixed(text)) => text,
            (None, DefaultValue::Unset(_)) => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Trust;
    use super::*;

    const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    const INTRODUCTION: &str = "\
# Configuration

All configuration keys. This page is generated from the table of keys in \
`crates/onward/src/config/keys.rs`; regenerate it with \
`ONWARD_BLESS=1 cargo test -p onward --bin onward reference`.

- Precedence, highest first: flags, environment, the project's `onward.toml` or `.onward/config.toml` (in the current \
directory or the nearest ancestor), the user's `$XDG_CONFIG_HOME/onward/config.toml`, defaults. \
`--config FILE` or `ONWARD_CONFIG` replaces both files.
- The environment variable of a key is its path in capitals, with `__` between tables and name. \
A single `_` instead of `__` is accepted with a warning. An empty variable counts as \
unset. Items of a list are separated by spaces.
- `onward config` prints the effective values and their sources. It does not print secrets.
- Unknown keys and invalid values are errors that name the file and the line.
- A project's `onward.toml` sets the keys marked *yes* in the column *project file*. The other keys \
set an address, a file, a secret or an access rule; they are ignored with a warning until you \
run `onward trust`. Trust covers one path and its content: after a change, trust the file again. \
`onward trust --list` lists the trusted files, `onward trust --revoke` removes the trust.
- A project file is ignored completely, with a warning, if another user owns it or its directory, \
or may write to one of them. `onward config` lists what was ignored and why. \
[threat-model.md](threat-model.md) has the reasons.
";

    fn document() -> String {
        let mut text = INTRODUCTION.to_owned();
        for (table, keys) in tables() {
            let (name, help) = (table.name(), table.help);
            let _ = match name {
                "" => write!(text, "\n## Top level\n\nKeys {help}."),
                name => write!(text, "\n## {name}\n\n`[{name}]`: {help}."),
            };
            if let Some(switch) = table.switch {
                let _ = write!(text, " Has no effect unless `{switch}` is set.");
            }
            text.push_str(
                "\n\n| key | environment variable | value | default | project file | meaning |\n",
            );
            text.push_str("|---|---|---|---|---|---|\n");
            text.extend(keys.iter().map(row));
        }
        let _ = write!(text, "\n## Example\n\n```toml\n{}```\n", example(""));
        text
    }

    fn row(key: &Key) -> String {
        let default = match key.default {
            DefaultValue::Fixed("") => "none".to_owned(),
            DefaultValue::Fixed(text) => format!("`{text}`"),
            DefaultValue::Unset(words) => words.to_owned(),
        };
        let mut meaning = key.help.to_owned();
        if let Some(other) = key.requires {
            let _ = write!(meaning, "; requires `{other}`");
        }
        if let Kind::Secret(_) | Kind::ApiKey = key.kind {
            meaning.push_str("; secret");
        }
        if let Kind::ApiKey = key.kind {
            meaning.push_str("; cannot be set in a file");
        }
        let project = match (&key.kind, key.trust) {
            (Kind::ApiKey, _) => "no",
            (_, Trust::Project) => "yes",
            (_, Trust::User) => "if trusted",
        };
        let (name, variable, value) = (key.name(), key.variable("__"), key.kind.expected());
        format!("| `{name}` | `{variable}` | {value} | {default} | {project} | {meaning} |\n")
    }

    #[test]
    fn the_document_is_up_to_date() {
        let text = document();
        if std::env::var_os("ONWARD_BLESS").is_some() {
            std::fs::write(DOCUMENT, &text).expect("document is written");
        }
        let written = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
        assert!(
            written == text,
            "docs/configuration.md is out of date: run \
             ONWARD_BLESS=1 cargo test -p onward --bin onward reference"
        );
    }
}
