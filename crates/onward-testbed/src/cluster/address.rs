//! The URL of a PostgreSQL server, without the database name.
//!
//! Parses only as much of a URL as is needed to replace the database name. The driver interprets
//! the rest.

/// `{prefix}/{database}{options}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// `postgres://user@host:port`, without a trailing `/`.
    prefix: String,
    /// Empty, or the query string including `?`.
    options: String,
}

impl Address {
    /// A server started by this crate, which uses `trust` authentication.
    pub(crate) fn local(port: u16) -> Self {
        Self {
            prefix: format!("postgres://postgres@127.0.0.1:{port}"),
            options: String::new(),
        }
    }

    /// `None` if the URL is not a PostgreSQL URL.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        if !["postgres", "postgresql"].contains(&scheme) {
            return None;
        }
        let (authority, options) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        let server = authority.split('/').next().unwrap_or_default();
        Some(Self {
            prefix: format!("{scheme}://{server}"),
            options: options.to_owned(),
        })
    }

    /// The address of another server (`host:port`) with the same user and options.
    pub(crate) fn at(&self, server: &str) -> Self {
        let (scheme, authority) = self.prefix.split_once("://").unwrap_or_default();
        let user = authority
            .rsplit_once('@')
            .map(|(user, _)| format!("{user}@"));
        Self {
            prefix: format!("{scheme}://{}{server}", user.unwrap_or_default()),
            options: self.options.clone(),
        }
    }

    /// The host and the port.
    pub(crate) fn host_and_port(&self) -> (&str, &str) {
        let server = self.prefix.rsplit(['@', '/']).next().unwrap_or_default();
        server.rsplit_once(':').unwrap_or((server, "5432"))
    }

    /// The user, without a password.
    pub(crate) fn user(&self) -> Option<&str> {
        let (_, authority) = self.prefix.split_once("://")?;
        let (user, _) = authority.rsplit_once('@')?;
        user.split(':').next()
    }

    pub(crate) fn database_url(&self, database: &str) -> String {
        format!("{}/{database}{}", self.prefix, self.options)
    }
}

#[test]
fn replaces_only_the_database_name() {
    for (url, expected) in [
        ("postgres://a@h:1/old", "postgres://a@h:1/new"),
        ("postgres://a@h:1", "postgres://a@h:1/new"),
        ("postgresql://a:b@h/?c=d/e", "postgresql://a:b@h/new?c=d/e"),
        ("postgres:///old?host=/run", "postgres:///new?host=/run"),
        ("postgres://h?c=d", "postgres://h/new?c=d"),
    ] {
        let address = Address::parse(url).expect(url);
        assert_eq!(address.database_url("new"), expected);
    }
    assert_eq!(
        Address::parse("postgres://postgres@127.0.0.1:5432/postgres"),
        Some(Address::local(5432))
    );
}

#[test]
fn keeps_user_and_options_for_another_server() {
    let address = Address::parse("postgres://a:b@h:1/old?c=d").expect("valid URL");
    let other = address.at("i:2");
    assert_eq!(other.database_url("new"), "postgres://a:b@i:2/new?c=d");
    assert_eq!(other.host_and_port(), ("i", "2"));
}

#[test]
fn rejects_other_urls() {
    for url in ["", "localhost:5432", "sqlite://a", "host=localhost"] {
        assert_eq!(Address::parse(url), None, "{url}");
    }
}
