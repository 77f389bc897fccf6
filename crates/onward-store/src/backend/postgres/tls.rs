//! TLS to a server: rustls, with the system's authorities or the one that the address names.
//!
//! A certificate is always checked, and so is the name in it: `sslmode=require` means here what
//! `verify-full` means to `libpq`. A server that must not be checked can be spoken to without TLS,
//! which at least looks like what it is.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error;
use crate::error::Error;

/// Whether, and how, what is sent is encrypted.
#[derive(Clone)]
pub(super) enum Tls {
    None,
    Rustls(MakeRustlsConnect),
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

/// TLS that trusts what it should.
pub(super) fn trusting(wish: &Wish, shown: &str) -> Result<Tls, Error> {
    let failed = |why: String| error::address(shown, why);
    let mut roots = RootCertStore::empty();
    match &wish.root {
        Some(path) => {
            let unreadable =
                |why| failed(format!("no certificate can be read from `{path}`: {why}"));
            for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
                roots
                    .add(certificate.map_err(unreadable)?)
                    .map_err(|why| failed(format!("`{path}` holds no authority: {why}")))?;
            }
        }
        None => {
            // What cannot be read among them is no reason to trust none of them.
            let system = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(system.certs);
        }
    }
    if roots.is_empty() {
        return Err(failed(
            "this system names no authority to check certificates by; name one with \
             `sslrootcert=PATH`, or speak without TLS with `sslmode=disable`"
                .to_owned(),
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| failed(why.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Tls::Rustls(MakeRustlsConnect::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_words_are_left_in_the_address() {
        let (url, asked) =
            wish("postgres://db/onward?sslmode=verify-full&user=me&sslrootcert=/ca.pem");
        assert_eq!(url, "postgres://db/onward?user=me");
        assert!(asked.is_strict());
        assert_eq!(asked.root.as_deref(), Some("/ca.pem"));
        let (url, asked) = wish("postgres://db/onward?sslmode=require");
        assert_eq!(url, "postgres://db/onward?sslmode=require");
        assert!(!asked.is_strict());
    }

    #[test]
    fn an_authority_that_is_not_there_is_named() {
        let (_, asked) = wish("postgres://db/onward?sslrootcert=/nowhere/ca.pem");
        let why = trusting(&asked, "postgres://db/onward")
            .err()
            .unwrap()
            .to_string();
        assert!(why.contains("/nowhere/ca.pem"), "{why}");
    }
}
