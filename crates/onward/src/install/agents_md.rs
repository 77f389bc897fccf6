//! A block in the `AGENTS.md` of a project, between two comments. Only the block is written, updated
//! and removed; the rest of the file belongs to the user.

/// The comments around the block. The version changes with the text.
const START: &str = "<!-- onward:start v1 -->";
const START_ANY: &str = "<!-- onward:start";
const END: &str = "<!-- onward:end -->";
const TEXT: &str = "## Plans

This project uses Onward (MCP server `onward`) for durable plans. Use it for work of more than about \
ten steps, for work that spans sessions or agents, or if a person must decide; otherwise use your \
own todo list. Run `onward prime` for the open plan of this project, and `onward instructions` for \
the details.";

/// The file with the block.
pub(super) fn add(text: &str) -> Result<String, String> {
    let block = format!("{START}\n{TEXT}\n{END}\n");
    Ok(match split(text)? {
        Some((before, after)) => format!("{before}{block}{after}"),
        None if text.is_empty() => block,
        None if text.ends_with("\n\n") => format!("{text}{block}"),
        None if text.ends_with('\n') => format!("{text}\n{block}"),
        None => format!("{text}\n\n{block}"),
    })
}

/// The file without the block. `None` if nothing else is left.
pub(super) fn remove(text: &str) -> Result<Option<String>, String> {
    let Some((before, after)) = split(text)? else {
        return Ok(Some(text.to_owned()));
    };
    // The empty line before the block was added with it.
    let before = before.strip_suffix('\n').unwrap_or(before);
    let rest = format!("{before}{after}");
    Ok((!rest.trim().is_empty()).then_some(rest))
}

/// The text before and after the block.
fn split(text: &str) -> Result<Option<(&str, &str)>, String> {
    let Some(start) = text.find(START_ANY) else {
        return Ok(None);
    };
    let (before, block) = text.split_at(start);
    let Some(end) = block.find(END) else {
        return Err(format!("`{START_ANY}` has no `{END}`"));
    };
    let after = block.get(end + END.len()..).unwrap_or_default();
    Ok(Some((before, after.strip_prefix('\n').unwrap_or(after))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_updates_and_removes_only_the_block() {
        for text in ["# Rules\n\nBe kind.\n", "# Rules", "a\n\n"] {
            let added = add(text).expect("no marker");
            assert!(added.starts_with(text), "{added}");
            assert_eq!(add(&added).as_deref(), Ok(&*added));
            let old = added.replace("v1", "v0").replace(TEXT, "old");
            assert_eq!(add(&old).as_deref(), Ok(&*added));
            let removed = remove(&added).expect("valid").expect("text is left");
            assert_eq!(removed.trim_end(), text.trim_end());
        }
        let edited = add("# Rules\n").expect("no marker") + "\nMore.\n";
        let removed = remove(&edited).expect("valid");
        assert_eq!(removed.as_deref(), Some("# Rules\n\nMore.\n"));
        assert_eq!(remove(&add("").expect("no marker")), Ok(None));
        assert!(add("<!-- onward:start v1 -->\n").is_err());
    }
}
