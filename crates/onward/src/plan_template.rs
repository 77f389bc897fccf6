//! Plan templates: plan files in `.onward/plans` of the project and in the user's directory.
//!
//! The files of a project come from its repository and are not trusted: they are read only if a
//! user names one, and only names of plain characters are listed. A template of the project hides
//! the user's template of the same name.

use std::path::{Path, PathBuf};

use crate::config::location;
use crate::project;

/// The directory in the project.
pub(crate) const PROJECT_DIRECTORY: &str = ".onward/plans";
const EXTENSION: &str = "md";
/// Maximum characters of a name.
const MAX_NAME: usize = 60;
/// Maximum number of templates per directory.
const MAX_TEMPLATES: usize = 200;

/// The directory that a template comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Project,
    User,
}

impl Scope {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Scope::Project => "project",
            Scope::User => "user",
        }
    }
}

/// A template that exists. Its content may be invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) scope: Scope,
}

/// The templates for work in a directory, sorted by name.
pub(crate) fn list(directory: &Path) -> Vec<Template> {
    let project = project::root(directory).join(PROJECT_DIRECTORY);
    let mut templates = in_folder(&project, Scope::Project);
    let user = location::user_plans();
    for template in user
        .iter()
        .flat_map(|folder| in_folder(folder, Scope::User))
    {
        if templates.iter().all(|other| other.name != template.name) {
            templates.push(template);
        }
    }
    templates.sort_by(|one, other| one.name.cmp(&other.name));
    templates
}

fn in_folder(folder: &Path, scope: Scope) -> Vec<Template> {
    let files = std::fs::read_dir(folder).into_iter().flatten();
    let template = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.ok()?.path();
        let name = path.file_stem()?.to_str()?.to_owned();
        let is_template = path
            .extension()
            .is_some_and(|extension| extension == EXTENSION)
            && is_plain(&name)
            && path.is_file();
        is_template.then_some(Template { name, path, scope })
    };
    let mut templates: Vec<Template> = files.filter_map(template).collect();
    templates.sort_by(|one, other| one.name.cmp(&other.name));
    templates.truncate(MAX_TEMPLATES);
    templates
}

/// Whether a name can be part of a command and of a prompt.
fn is_plain(name: &str) -> bool {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    name.len() <= MAX_NAME && name.chars().all(is_allowed) && !name.starts_with(['-', '.'])
}

#[cfg(test)]
mod tests {
    use onward_testbed::TestDir;

    use super::*;

    #[test]
    fn lists_only_files_with_plain_names() {
        let dir = TestDir::new("templates-names");
        for name in [
            "release.md",
            "a b.md",
            "`x`.md",
            "notes.txt",
            "-x.md",
            ".md",
            "b.md",
        ] {
            std::fs::write(dir.join(name), "").expect("write a file");
        }
        std::fs::create_dir(dir.join("folder.md")).expect("create a directory");
        let names: Vec<String> = in_folder(dir.path(), Scope::User)
            .into_iter()
            .map(|template| template.name)
            .collect();
        assert_eq!(names, ["b", "release"]);
        assert_eq!(in_folder(&dir.join("missing"), Scope::User), []);
    }
}
