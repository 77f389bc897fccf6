//! The modules of a crate and the names in their scopes, from the syntax of the files.
//!
//! A path resolves to the file that defines its item, and to the files whose imports, re-exports and
//! globs lead to it. Not resolved: methods and fields, which no import names.

#![allow(
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a file that cannot be parsed fails the test; `syn` may add kinds of items"
)]

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;
use syn::{Attribute, Item, ItemUse, UseTree};

use crate::tree::File;

/// Longest chain of imports that is followed. A longer chain is an import of itself.
const MAX_IMPORTS: usize = 16;

/// The modules of a crate. The first is its root.
pub(super) struct Modules(Vec<Module>);

/// One module: a file, or an inline module in a file.
pub(super) struct Module {
    /// The path of its file.
    pub(super) file: String,
    parent: Option<usize>,
    names: BTreeMap<String, Vec<Name>>,
    globs: Vec<Vec<String>>,
}

/// A name in the scope of a module. A type, a value and a macro can have the same name.
enum Name {
    Item,
    Module(usize),
    Import(Vec<String>),
}

/// An item and a file that defines or imports it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Definition<'a> {
    pub(super) file: &'a str,
    pub(super) name: String,
}

impl Modules {
    /// Reads the crate with this root file, and returns the syntax of its modules.
    pub(super) fn read(root: &str, files: &BTreeMap<&str, &File>) -> (Self, Vec<(usize, Item)>) {
        let mut reader = Reader {
            files,
            modules: Self(Vec::new()),
            items: Vec::new(),
        };
        let directory = root.rsplit_once('/').map_or("", |(directory, _)| directory);
        reader.file(root, directory, None);
        (reader.modules, reader.items)
    }

    pub(super) fn file(&self, module: usize) -> &str {
        &self.0[module].file
    }

    /// Whether a module, or one of the modules that enclose it, is in this file.
    pub(super) fn is_within(&self, module: usize, file: &str) -> bool {
        let mut current = Some(module);
        while let Some(module) = current {
            if self.0[module].file == file {
                return true;
            }
            current = self.0[module].parent;
        }
        false
    }

    /// The definitions that a path in `module` can refer to. Empty for other crates.
    pub(super) fn resolve(&self, module: usize, path: &[String]) -> BTreeSet<Definition<'_>> {
        let mut found = BTreeSet::new();
        self.follow(module, path, MAX_IMPORTS, &mut found);
        found
    }

    fn follow<'a>(
        &'a self,
        module: usize,
        path: &[String],
        imports: usize,
        found: &mut BTreeSet<Definition<'a>>,
    ) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let parent = self.0[module].parent;
        match (first.as_str(), parent) {
            ("crate", _) => self.member(0, rest, imports, found),
            ("self", _) => self.member(module, rest, imports, found),
            ("super", Some(parent)) if rest.first().is_some_and(|next| next == "super") => {
                self.follow(parent, rest, imports, found);
            }
            ("super", Some(parent)) => self.member(parent, rest, imports, found),
            _ => {
                self.search(module, path, imports, found);
            }
        }
    }

    /// Resolves a path below a module of this crate. A name without a definition in the syntax was
    /// defined by a macro.
    fn member<'a>(
        &'a self,
        module: usize,
        path: &[String],
        imports: usize,
        found: &mut BTreeSet<Definition<'a>>,
    ) {
        let known = self.search(module, path, imports, found);
        if let (false, Some(name)) = (known, path.first()) {
            found.insert(Definition {
                file: &self.0[module].file,
                name: name.clone(),
            });
        }
    }

    /// Searches a name in the scope of a module, and returns whether it is there.
    fn search<'a>(
        &'a self,
        module: usize,
        path: &[String],
        imports: usize,
        found: &mut BTreeSet<Definition<'a>>,
    ) -> bool {
        let Some((first, rest)) = path.split_first() else {
            return true;
        };
        let Some(imports) = imports.checked_sub(1) else {
            return false;
        };
        let Module {
            file, names, globs, ..
        } = &self.0[module];
        let definition = Definition {
            file,
            name: first.clone(),
        };
        let Some(names) = names.get(first) else {
            let before = found.len();
            for glob in globs {
                if let Some(target) = self.module_at(module, glob) {
                    self.search(target, path, imports, found);
                }
            }
            let is_known = found.len() > before;
            if is_known {
                found.insert(definition);
            }
            return is_known;
        };
        for name in names {
            match name {
                Name::Item => {
                    found.insert(definition.clone());
                }
                Name::Module(child) => self.member(*child, rest, imports, found),
                Name::Import(target) => {
                    found.insert(definition.clone());
                    self.follow(module, &[target, rest].concat(), imports, found);
                }
            }
        }
        true
    }

    /// The module of this crate at a path without imports.
    fn module_at(&self, module: usize, path: &[String]) -> Option<usize> {
        path.iter()
            .try_fold(module, |module, name| match name.as_str() {
                "crate" => Some(0),
                "self" => Some(module),
                "super" => self.0[module].parent,
                name => self.0[module]
                    .names
                    .get(name)?
                    .iter()
                    .find_map(|name| match name {
                        Name::Module(child) => Some(*child),
                        Name::Item | Name::Import(_) => None,
                    }),
            })
    }
}

struct Reader<'a> {
    files: &'a BTreeMap<&'a str, &'a File>,
    modules: Modules,
    items: Vec<(usize, Item)>,
}

impl Reader<'_> {
    /// Adds the module in a file, whose children are in `directory`.
    fn file(&mut self, path: &str, directory: &str, parent: Option<usize>) -> Option<usize> {
        let file = self.files.get(path)?;
        let syntax = syn::parse_file(&file.text)
            .unwrap_or_else(|error| panic!("{path} is not valid Rust: {error}"));
        Some(self.module(path, directory, parent, syntax.items))
    }

    fn module(
        &mut self,
        file: &str,
        directory: &str,
        parent: Option<usize>,
        items: Vec<Item>,
    ) -> usize {
        let module = self.modules.0.len();
        self.modules.0.push(Module {
            file: file.to_owned(),
            parent,
            names: BTreeMap::new(),
            globs: Vec::new(),
        });
        for item in items.into_iter().filter(|item| !is_test(attributes(item))) {
            match item {
                Item::Mod(child) => {
                    let name = child.ident.to_string();
                    let below = format!("{directory}/{name}");
                    let added = match child.content {
                        Some((_, items)) => Some(self.module(file, &below, Some(module), items)),
                        None => self.file(&format!("{below}.rs"), &below, Some(module)),
                    };
                    if let Some(added) = added {
                        self.name(module, name, Name::Module(added));
                    }
                }
                item => {
                    if let Some(name) = defined(&item) {
                        self.name(module, name, Name::Item);
                    }
                    let mut imports = Imports(Vec::new());
                    imports.visit_item(&item);
                    for tree in imports.0 {
                        self.import(module, tree);
                    }
                    self.items.push((module, item));
                }
            }
        }
        module
    }

    fn name(&mut self, module: usize, name: String, what: Name) {
        let names = &mut self.modules.0[module].names;
        names.entry(name).or_default().push(what);
    }

    fn import(&mut self, module: usize, tree: &UseTree) {
        leaves(tree, &mut Vec::new(), &mut |path, name| match name {
            Some(name) => self.name(module, name, Name::Import(path)),
            None => self.modules.0[module].globs.push(path),
        });
    }
}

/// The imports in an item. Those in a function count as imports of its module.
struct Imports<'a>(Vec<&'a UseTree>);

impl<'a> Visit<'a> for Imports<'a> {
    fn visit_item_use(&mut self, item: &'a ItemUse) {
        self.0.push(&item.tree);
    }
}

/// Calls `each` with the path and the local name of each import; a glob has no name.
pub(super) fn leaves(
    tree: &UseTree,
    prefix: &mut Vec<String>,
    each: &mut impl FnMut(Vec<String>, Option<String>),
) {
    let imported = |prefix: &[String], name: String| {
        // `use a::{self}` imports `a`.
        let name = (name != "self" || prefix.is_empty()).then_some(name);
        prefix.iter().cloned().chain(name).collect::<Vec<_>>()
    };
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            leaves(&path.tree, prefix, each);
            prefix.pop();
        }
        UseTree::Name(name) => {
            let path = imported(prefix, name.ident.to_string());
            let name = path.last().cloned();
            each(path, name);
        }
        UseTree::Rename(rename) => {
            let path = imported(prefix, rename.ident.to_string());
            each(path, Some(rename.rename.to_string()));
        }
        UseTree::Glob(_) => each(prefix.clone(), None),
        UseTree::Group(group) => {
            for tree in &group.items {
                leaves(tree, prefix, each);
            }
        }
    }
}

/// Whether the item is compiled for tests only.
pub(super) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|condition| condition.is_ident("test"))
    })
}

fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
