//! TLS to a server: rustls, with the certificate authorities of the system or the one in the
//! address.
//!
//! The certificate and its host name are always verified: `sslmode=require` is equivalent
//! to `verify-full` of `libpq`. A server that cannot be verified can be used only without TLS,
//! which makes the missing protection explicit.

use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error;
use super::options::take_options;
use crate::error::Error;

/// Whether and how traffic is encrypted.
#[derive(Clone)]
pub(super) enum Tls {
    None,
    Rustls(Connector),
}

impl Tls {
    /// Whether a connection failed because of TLS: the server does not support it, or the handshake
    /// failed.
    pub(super) fn has_failed(&self, why: &tokio_postgres::Error) -> bool {
        let Tls::Rustls(connector) = self else {
            return false;
        };
        if why.as_db_error().is_some() || why.is_closed() {
            return false;
        }
        let by_io = why.source().and_then(|cause| cause.downcast_ref());
        match by_io.map(io::Error::get_ref) {
            Some(cause) => cause.is_some_and(|cause| cause.is::<rustls::Error>()),
            None => !connector.accepted.load(Ordering::Relaxed),
        }
    }
}

/// TLS connector that records whether a server has accepted TLS: the driver's error for a server
/// without it has no separate type.
#[derive(Clone)]
pub(super) struct Connector<C = MakeRustlsConnect> {
    rustls: C,
    accepted: Arc<AtomicBool>,
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;
    type TlsConnect = Connector<<MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect>;
    type Error = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Self::TlsConnect, Self::Error> {
        Ok(Connector {
            rustls: MakeTlsConnect::<Socket>::make_tls_connect(&mut self.rustls, domain)?,
            accepted: Arc::clone(&self.accepted),
        })
    }
}

impl<C: TlsConnect<Socket>> TlsConnect<Socket> for Connector<C> {
    type Stream = C::Stream;
    type Error = C::Error;
    type Future = C::Future;

    fn connect(self, stream: Socket) -> C::Future {
        self.accepted.store(true, Ordering::Relaxed);
        self.rustls.connect(stream)
    }
}

/// TLS options of an address that the driver does not support.
#[derive(Default)]
pub(super) struct TlsOptions {
    root_certificate: Option<String>,
    has_verify_mode: bool,
}

impl TlsOptions {
    /// Removes these options from an address.
    pub(super) fn take(url: &str) -> (String, Self) {
        let mut options = Self::default();
        let url = take_options(url, |name, value| match (name, value) {
            ("sslrootcert", "system") => true,
            ("sslrootcert", path) => {
                options.root_certificate = Some(path.to_owned());
                true
            }
            ("sslmode", "verify-ca" | "verify-full") => {
                options.has_verify_mode = true;
                true
            }
            _ => false,
        });
        (url, options)
    }

    /// Whether the address requires verification, which only TLS provides.
    pub(super) fn requires_verification(&self) -> bool {
        self.has_verify_mode || self.root_certificate.is_some()
    }
}

/// TLS with the requested certificate authorities.
pub(super) fn trusting(options: &TlsOptions, shown: &str) -> Result<Tls, Error> {
    let hint = "set `sslrootcert` to a PEM file with the certificate of a certificate authority, or omit \
                it to use those of the system";
    let failed = |why: String| error::address(shown, why, hint);
    let mut roots = RootCertStore::empty();
    match &options.root_certificate {
        Some(path) => {
            let unreadable = |why| {
                failed(format!("cannot read a certificate from `{path}`: {why}")).caused_by(why)
            };
            for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
                roots.add(certificate.map_err(unreadable)?).map_err(|why| {
                    failed(format!(
                        "`{path}` is not the certificate of a certificate authority: {why}"
                    ))
                    .caused_by(why)
                })?;
            }
        }
        None => {
            // Certificates that cannot be read are skipped.
            let system = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(system.certs);
        }
    }
    if roots.is_empty() {
        return Err(failed(
            "the system has no certificate authorities; set one with `sslrootcert=PATH`, or disable \
             TLS with `sslmode=disable`"
                .to_owned(),
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| failed(why.to_string()).caused_by(why))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Tls::Rustls(Connector {
        rustls: MakeRustlsConnect::new(config),
        accepted: Arc::default(),
    }))
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem;

    use super::*;

    #[test]
    fn keeps_the_options_of_the_driver_in_the_address() {
        let (url, options) = TlsOptions::take(
            "postgres://db/onward?sslmode=verify-full&user=me&sslrootcert=/ca.pem",
        );
        assert_eq!(url, "postgres://db/onward?user=me");
        assert!(options.requires_verification());
        assert_eq!(options.root_certificate.as_deref(), Some("/ca.pem"));
        let (url, options) = TlsOptions::take("postgres://db/onward?sslmode=require");
        assert_eq!(url, "postgres://db/onward?sslmode=require");
        assert!(!options.requires_verification());
    }

    #[test]
    fn names_a_certificate_file_that_is_missing() {
        let (_, options) = TlsOptions::take("postgres://db/onward?sslrootcert=/nowhere/ca.pem");
        let why = trusting(&options, "postgres://db/onward").err().unwrap();
        assert!(why.cause::<pem::Error>().is_some(), "{why:?}");
        assert!(why.to_string().contains("/nowhere/ca.pem"), "{why}");
    }
}
