//! Where a server is, apart from which of its databases is meant.
//!
//! Only as much of an address is read as it takes to put another database into it; what the
//! rest means is for the driver that it is given to.

/// `{front}/{database}{options}`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// `postgres://user@host:port`, without a `/` at its end.
    front: String,
    /// Empty, or `?` and what follows.
    options: String,
}

impl Address {
    /// A server of ours, which trusts whoever reaches it.
    pub(crate) fn local(port: u16) -> Self {
        Self {
            front: format!("postgres://postgres@127.0.0.1:{port}"),
            options: String::new(),
        }
    }

    /// None where it is not the address of a PostgreSQL.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        if !["postgres", "postgresql"].contains(&scheme) {
            return None;
        }
        let (place, options) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        let server = place.split('/').next().unwrap_or_default();
        Some(Self {
            front: format!("{scheme}://{server}"),
            options: options.to_owned(),
        })
    }

    pub(crate) fn with(&self, database: &str) -> String {
        format!("{}/{database}{}", self.front, self.options)
    }
}

#[test]
fn another_database_of_the_same_server_keeps_the_rest_of_the_address() {
    for (url, expected) in [
        ("postgres://a@h:1/old", "postgres://a@h:1/new"),
        ("postgres://a@h:1", "postgres://a@h:1/new"),
        ("postgresql://a:b@h/?c=d/e", "postgresql://a:b@h/new?c=d/e"),
        ("postgres:///old?host=/run", "postgres:///new?host=/run"),
        ("postgres://h?c=d", "postgres://h/new?c=d"),
    ] {
        let address = Address::parse(url).expect(url);
        assert_eq!(address.with("new"), expected);
    }
    assert_eq!(
        Address::parse("postgres://postgres@127.0.0.1:5432/postgres"),
        Some(Address::local(5432))
    );
}

#[test]
fn what_is_no_address_of_a_postgresql_is_refused() {
    for url in ["", "localhost:5432", "sqlite://a", "host=localhost"] {
        assert_eq!(Address::parse(url), None, "{url}");
    }
}
