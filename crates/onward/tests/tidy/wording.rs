//! Rejects wording that readers have to translate, in documents, user-visible strings, comments and
//! names.
//!
//! Each entry of `REJECTED` marks a sentence without a named actor, a metaphor, or a relative
//! clause where the field has a noun. The second value is the replacement. `ALLOWED` lists the
//! exceptions, each with its reason.

use crate::tree::{File, assert_no_violations};

/// Rejected word sequences and their replacements. Sequences with many ordinary uses, such as
/// "behind" and "without it", are not listed.
const REJECTED: [(&str, &str); 33] = [
    ("anybody", "name the actor"),
    ("anyone", "name the actor"),
    ("nobody", "name the actor"),
    ("somebody", "name the actor"),
    ("someone", "name the actor"),
    ("whoever", "name the actor"),
    ("heard", "received, reported, recorded"),
    ("hears", "receives"),
    ("tells", "returns, reports, states"),
    ("told", "reported, notified, specified"),
    ("stands", "is, is stored"),
    ("lies there", "is, is stored"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("goes along", "is sent with"),
    ("going on", "in progress"),
    ("is over", "has ended, has passed"),
    ("for ever", "forever, indefinitely"),
    ("of its own", "a separate one"),
    ("of their own", "separate ones"),
    ("of our own", "our"),
    ("is let", "is allowed, is accepted"),
    ("are let", "are allowed, are accepted"),
    ("at once", "together, concurrently, immediately"),
    ("the one before", "the previous one"),
    ("what there is", "the available items"),
    ("such as it is", "unchanged"),
    ("by itself", "automatically, alone"),
    ("is no", "is not a"),
    ("has a word", "may act"),
    ("is good for", "is valid for"),
    ("soon enough", "state the limit"),
    ("how manieth", "the attempt number"),
];

/// Phrases that contain a rejected sequence, and why they stay.
const ALLOWED: [(&str, &str); 2] = [
    ("is no longer", "plain English"),
    ("there is no", "plain English"),
];

/// Files whose text is not ours to word, or that must contain the rejected words.
const EXEMPT: [(&str, &str); 6] = [
    ("crates/onward/tests/tidy/wording.rs", "the list itself"),
    ("crates/onward/tests/fixtures/", "captured from agents"),
    (
        "crates/onward-testbed/src/cluster/programs.rs",
        "the Unix user `nobody`",
    ),
    ("LICENSE-", "licence texts"),
    ("Cargo.lock", "names of packages"),
    (".proptest-regressions", "written by a tool"),
];

fn is_exempt(file: &File) -> bool {
    EXEMPT
        .iter()
        .any(|(part, _)| file.path.starts_with(part) || file.path.ends_with(part))
}

/// The line in lower case, with one space between words. `_` separates words, as in names.
/// Punctuation is a word, so that no sequence spans two sentences.
fn words(line: &str) -> String {
    let mut spaced = String::from(" ");
    for c in line.chars() {
        let is_word = c.is_alphanumeric() || c == '\'';
        if !is_word && !spaced.ends_with(' ') {
            spaced.push(' ');
        }
        if is_word {
            spaced.extend(c.to_lowercase());
        } else if c.is_ascii_punctuation() && c != '_' {
            spaced.push(c);
            spaced.push(' ');
        }
    }
    spaced.push(' ');
    spaced
}

/// The comment of a line, and its string literals of several words.
fn prose(line: &str, comment_mark: &str) -> String {
    let comment = line
        .find(comment_mark)
        .filter(|at| !line[..*at].ends_with(':'));
    let (code, comment) = comment.map_or((line, ""), |at| line.split_at(at));
    let literals = code.split('"').skip(1).step_by(2);
    let texts: Vec<&str> = literals.filter(|text| text.contains(' ')).collect();
    format!("{} {comment}", texts.join(" "))
}

fn has_rejected_wording(file: &File) -> Vec<String> {
    if is_exempt(file) {
        return Vec::new();
    }
    // The store's names, including columns, change together with its structure.
    let is_store = file.path.starts_with("crates/onward-store/");
    let comment_mark = if file.is_rust() { "//" } else { "--" };
    let mut violations = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let mut text = if is_store {
            words(&prose(line, comment_mark))
        } else {
            words(line)
        };
        for (phrase, _) in ALLOWED {
            text = text.replace(&format!(" {phrase} "), " ");
        }
        for (sequence, instead) in REJECTED {
            if text.contains(&format!(" {sequence} ")) {
                violations.push(file.at(number, &format!("`{sequence}`: write {instead}")));
            }
        }
    }
    violations
}

#[test]
fn no_text_needs_a_translation() {
    assert_no_violations(has_rejected_wording);
}

#[test]
fn finds_rejected_wording_in_every_kind_of_file() {
    for (path, line) in [
        ("docs/a.md", "Somebody must decide."),
        ("a.rs", "/// A step that nobody works on."),
        ("a.rs", "fn is_heard() {}"),
        ("a.sql", "-- kept for ever"),
        ("a.html", "<p>It goes on</p>"),
        ("crates/onward-store/src/a.rs", "let a = \"it is no file\";"),
        ("crates/onward-store/src/a.rs", "let a = 1; // all at once"),
    ] {
        assert_eq!(
            has_rejected_wording(&File::new(path, line)).len(),
            1,
            "{line}"
        );
    }
}

#[test]
fn accepts_plain_wording_and_exempt_files() {
    for (path, line) in [
        ("docs/a.md", "The claim is no longer valid."),
        ("docs/a.md", "There is no such plan."),
        ("a.rs", "let unheard = 1;"),
        ("LICENSE-MIT", "for any person whoever"),
        ("crates/onward-store/src/a.rs", "fn is_heard() {}"),
    ] {
        assert_eq!(
            has_rejected_wording(&File::new(path, line)),
            [""; 0],
            "{line}"
        );
    }
}
