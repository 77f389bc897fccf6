//! Golden files: expected texts that are checked in and updated with `ONWARD_BLESS=1`.

use std::path::Path;

/// Whether golden files are rewritten instead of compared.
pub fn is_blessing() -> bool {
    std::env::var_os("ONWARD_BLESS").is_some()
}

/// Compares a text with a golden file, or rewrites the file if [`is_blessing`].
#[track_caller]
pub fn assert_matches(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    if is_blessing() {
        let parent = path.parent().expect("the file is in a directory");
        std::fs::create_dir_all(parent).expect("directory created");
        std::fs::write(path, text).expect("golden file written");
        return;
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    let golden_lines = golden.lines().map(Some).chain(std::iter::repeat(None));
    let difference = (1..)
        .zip(text.lines())
        .zip(golden_lines)
        .find(|((_, line), golden)| Some(*line) != *golden);
    assert!(
        text == golden,
        "`{}` differs; first line: {difference:#?}\n\
         To update it, run the test with `ONWARD_BLESS=1` and review the diff.\n\n{text}",
        path.display()
    );
}
