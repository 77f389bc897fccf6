//! The paths that an item names: in imports, types, expressions, patterns, attributes and the
//! arguments of macros.

use proc_macro2::{Literal, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, LitStr, Macro, Meta, Path, Visibility};

use super::modules::{is_test, leaves};

/// The paths in an item.
pub(super) fn paths(item: &Item) -> Vec<Vec<String>> {
    let mut references = References(Vec::new());
    references.visit_item(item);
    references.0
}

struct References(Vec<Vec<String>>);

impl<'ast> Visit<'ast> for References {
    fn visit_path(&mut self, path: &'ast Path) {
        self.0.push(segments(path));
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        leaves(&item.tree, &mut Vec::new(), &mut |path, _| {
            self.0.push(path)
        });
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        visit::visit_macro(self, item);
        self.tokens(item.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone());
        }
    }

    /// `pub(in path)` is not a use of the path.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

impl References {
    /// Reads paths in unparsed tokens, and in strings, as in `serde(with = "path")`.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.end(&mut path);
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Punct(_) => {
                    self.end(&mut path);
                    colons = 0;
                }
                TokenTree::Group(group) => {
                    self.end(&mut path);
                    self.tokens(group.stream());
                }
                TokenTree::Literal(literal) => {
                    self.end(&mut path);
                    self.0.extend(path_in(&literal));
                }
            }
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        if !path.is_empty() {
            self.0.push(std::mem::take(path));
        }
    }
}

fn segments(path: &Path) -> Vec<String> {
    let segments = path.segments.iter();
    segments.map(|segment| segment.ident.to_string()).collect()
}

fn path_in(literal: &Literal) -> Option<Vec<String>> {
    let text: LitStr = syn::parse_str(&literal.to_string()).ok()?;
    let path = text.parse().ok().map(|path| segments(&path))?;
    (path.len() > 1).then_some(path)
}
