//! TLS to a server: rustls, with the system's authorities or the one that the address names.
//!
//! A certificate is always checked, and so is the name in it: `sslmode=require` means here what
//! `verify-full` means to `libpq`. A server that must not be checked can be spoken to without TLS,
//! which at least looks like what it is.

use super::error;
use crate::error::Error;

/// Whether, and how, what is sent is encrypted.
#[derive(Clone)]
pub(super) enum Tls {
    None,
}

/// What an address says about TLS in words that the driver does not know.
#[derive(Default)]
pub(super) struct Wish {
    root: Option<String>,
    strict: bool,
}

impl Wish {
    /// Whether the address asks for a check that only TLS can give.
    pub(super) fn is_strict(&self) -> bool {
        self.strict || self.root.is_some()
    }
}

/// Takes these words out of an address.
pub(super) fn wish(url: &str) -> (String, Wish) {
    let mut wish = Wish::default();
    let Some((place, options)) = url.split_once('?') else {
        return (url.to_owned(), wish);
    };
    let kept: Vec<&str> = options
        .split('&')
        .filter(|option| match option.split_once('=') {
            Some(("sslrootcert", "system")) => false,
            Some(("sslrootcert", path)) => {
                wish.root = Some(path.to_owned());
                false
            }
            Some(("sslmode", "verify-ca" | "verify-full")) => {
                wish.strict = true;
                false
            }
            Some(_) | None => true,
        })
        .collect();
    let url = if kept.is_empty() {
        place.to_owned()
    } else {
        format!("{place}?{}", kept.join("&"))
    };
    (url, wish)
}

/// Waits for its dependencies.
pub(super) fn trusting(_wish: &Wish, shown: &str) -> Result<Tls, Error> {
    Err(error::address(
        shown,
        "TLS is not built in yet; add `sslmode=disable`",
    ))
}
