//! Whole files that Onward writes for an agent: a skill, a command or an agent definition.
//!
//! The last line is a comment with a digest of the text before it. As long as the digest matches,
//! the file is as Onward wrote it: installing updates it, and uninstalling deletes it. A file that
//! the user has changed, or that has no such line, belongs to the user and stays as it is.

use sha2::{Digest, Sha256};

/// The start of the comment.
const MARK: &str = "Written by `onward install`, sha256 ";
/// Characters of the digest.
const DIGEST_CHARS: usize = 16;

/// The syntax of a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comment {
    /// `<!-- … -->`
    Html,
    /// `# …`
    Hash,
}

/// The text with its last line.
pub(super) fn with_mark(text: &str, comment: Comment) -> String {
    let digest = digest(text);
    let text = text.trim_end();
    match comment {
        Comment::Html => format!("{text}\n\n<!-- {MARK}{digest} -->\n"),
        Comment::Hash => format!("{text}\n\n# {MARK}{digest}\n"),
    }
}

/// Whether a file is as Onward wrote it.
pub(super) fn is_unchanged(file: &str) -> bool {
    let Some((text, last)) = file.trim_end().rsplit_once('\n') else {
        return false;
    };
    let Some((_, stored)) = last.split_once(MARK) else {
        return false;
    };
    stored.get(..DIGEST_CHARS) == Some(digest(text).as_str())
}

fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.trim_end().as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.chars().take(DIGEST_CHARS).collect()
}
