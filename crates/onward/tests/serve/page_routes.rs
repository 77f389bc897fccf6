//! A request for every route that is not in the API's route table: the dashboard, MCP, health checks
//! and metrics. The routes are read from the sources, so a new one without an entry fails a test.

use std::collections::BTreeSet;
use std::path::Path;

use onward_testbed::{Response, Server, send};
use reqwest::Method;

use crate::world::Ids;

/// How a route is tested.
pub(crate) enum Route {
    /// A page or a form of the dashboard: the lowest role that is allowed, if agents cannot decide
    /// reviews, and the fields of the form.
    Page(&'static str, &'static [(&'static str, &'static str)]),
    /// Needs no token and shows nothing of a tenant.
    Public,
    /// Tested elsewhere.
    Separate,
}

use Route::{Page, Public, Separate};

/// The routes outside the API's table, as method and first argument of `route` in the sources.
pub(crate) const ROUTES: &[(&str, &str, Route)] = &[
    ("GET", "/", Page("viewer", &[])),
    ("GET", "/assets/{name}", Public),
    // `events.rs` covers the same stream.
    ("GET", "/live", Separate),
    ("GET", "/login", Public),
    ("POST", "/login", Public),
    ("GET", "/login/provider", Public),
    ("GET", "CALLBACK", Public),
    // Ends the session: `pages/access.rs`.
    ("POST", "/logout", Separate),
    ("GET", "/journal", Page("viewer", &[])),
    ("GET", "/notices", Page("viewer", &[])),
    ("GET", "/plans", Page("viewer", &[])),
    ("POST", "/plans/sample", Page("agent", &[])),
    ("GET", "/plans/new", Page("viewer", &[])),
    (
        "POST",
        "/plans/new",
        Page(
            "agent",
            &[
                ("name", "made"),
                ("researchQuestion", "why"),
                ("steps[0].instructions", "do"),
                ("steps[0].stepType", "custom"),
            ],
        ),
    ),
    (
        "POST",
        "/plans/selected",
        Page("member", &[("action", "release")]),
    ),
    ("POST", "/plans/export", Page("viewer", &[])),
    ("POST", "/plans/{plan}/release", Page("member", &[])),
    (
        "POST",
        "/plans/{plan}/fail",
        Page("member", &[("reason", "over")]),
    ),
    ("GET", "/plans/{plan}", Page("viewer", &[])),
    ("POST", "/plans/{plan}/resume", Page("member", &[])),
    (
        "POST",
        "/plans/{plan}/steps",
        Page("member", &[("type", "search"), ("instructions", "more")]),
    ),
    (
        "POST",
        "/plans/{plan}/abandon",
        Page("member", &[("reason", "over")]),
    ),
    ("GET", "/plans/{plan}/export.json", Page("viewer", &[])),
    ("GET", "/plans/{plan}/export.md", Page("viewer", &[])),
    ("GET", "/plans/{plan}/steps/{step}", Page("viewer", &[])),
    (
        "POST",
        "/plans/{plan}/steps/{step}/requeue",
        Page("member", &[]),
    ),
    (
        "POST",
        "/plans/{plan}/steps/{step}/skip",
        Page("member", &[]),
    ),
    (
        "POST",
        "/plans/{plan}/steps/{step}/continue",
        Page("member", &[]),
    ),
    (
        "POST",
        "/plans/{plan}/steps/{step}/fail",
        Page("member", &[("reason", "over")]),
    ),
    (
        "POST",
        "/plans/{plan}/steps/{step}/redo",
        Page("member", &[("reason", "over")]),
    ),
    (
        "POST",
        "/plans/{plan}/steps/{step}/fork",
        Page("agent", &[]),
    ),
    (
        "POST",
        "/plans/{plan}/steps/{step}/instruct",
        Page("member", &[("instructions", "other")]),
    ),
    (
        "POST",
        "/plans/{plan}/edit",
        Page("member", &[("priority", "7")]),
    ),
    (
        "POST",
        "/plans/{plan}/budget",
        Page("member", &[("maxSteps", "40")]),
    ),
    (
        "POST",
        "/plans/{plan}/steps/{step}/move",
        Page("member", &[("position", "2")]),
    ),
    // The token is the credential: `decision_links.rs`.
    ("GET", "/decide/{token}", Separate),
    ("POST", "/decide/{token}", Separate),
    ("GET", "/inbox", Page("viewer", &[])),
    ("GET", "/jump", Page("viewer", &[])),
    ("GET", "/reviews", Page("viewer", &[])),
    ("GET", "/reviews/{id}", Page("viewer", &[])),
    (
        "POST",
        "/reviews/{id}/decide",
        Page("member", &[("decision", "approve")]),
    ),
    ("GET", "/sessions", Page("viewer", &[])),
    ("GET", "/sessions/{session}", Page("viewer", &[])),
    (
        "POST",
        "/sessions/{session}/calls/{turn}/{position}/close",
        Page("member", &[]),
    ),
    ("GET", "/library", Page("viewer", &[])),
    ("GET", "/library/skills", Page("viewer", &[])),
    ("GET", "/library/skills/{execution}", Page("viewer", &[])),
    ("GET", "/search", Page("viewer", &[])),
    ("GET", "/artifacts/{id}", Page("viewer", &[])),
    ("GET", "/outputs/{id}", Page("viewer", &[])),
    ("GET", "/skills", Page("viewer", &[])),
    ("GET", "/skills/{execution}", Page("viewer", &[])),
    ("GET", "/settings", Page("viewer", &[])),
    ("GET", "/settings/access", Page("viewer", &[])),
    ("GET", "/settings/alerts", Page("viewer", &[])),
    ("POST", "/settings/alerts/test", Page("owner", &[])),
    ("GET", "/settings/limits", Page("viewer", &[])),
    ("GET", "/settings/about", Page("viewer", &[])),
    (
        "POST",
        "/settings/reviews",
        Page("owner", &[("agents", "wait")]),
    ),
    (
        "POST",
        "/settings/tokens",
        Page("admin", &[("name", "made"), ("role", "viewer")]),
    ),
    (
        "POST",
        "/settings/tokens/{token}/revoke",
        Page("admin", &[]),
    ),
    ("GET", "/healthz", Public),
    ("GET", "/readyz", Public),
    ("GET", "metadata::SERVER_PATH", Public),
    ("GET", "metadata::MCP_PATH", Public),
    ("GET", "server_card::CATALOG_PATH", Public),
    ("GET", "server_card::CARD_PATH", Public),
    // Shows the whole server, to the server's own tenant only: `metrics.rs`.
    ("GET", "/metrics", Separate),
    // The tools are those of the API: `mcp.rs`.
    ("ANY", "/mcp", Separate),
    // The route table of the API: `routes.rs`.
    ("ANY", "&path", Separate),
    // In the API's document, with an entry in `routes.rs`.
    ("GET", "&format!(\"{BASE}{EXPORT}\")", Separate),
    // `events.rs`, `api/openapi.rs`.
    ("GET", "&format!(\"{BASE}/events\")", Separate),
    ("GET", "&format!(\"{BASE}/openapi.json\")", Separate),
];

/// The names in braces of a path.
pub(crate) fn parameters(path: &str) -> Vec<&str> {
    let parts = path.split('{').skip(1);
    parts.filter_map(|part| part.split('}').next()).collect()
}

/// The path with these ids. `path` is a path in [`ROUTES`].
pub(crate) fn fill(path: &str, ids: impl Fn(&str) -> Ids) -> String {
    let mut filled = path.to_owned();
    for name in parameters(path) {
        let ids = ids(name);
        let value = match (name, path.split('/').nth(1)) {
            ("plan", _) => ids.plan,
            ("step", _) | ("id", Some("reviews")) => ids.step,
            ("id", Some("artifacts")) => ids.artifact,
            ("id", Some("outputs")) => ids.output,
            ("execution", _) => ids.execution,
            ("session", _) => ids.session,
            ("token", _) => ids.token,
            ("turn" | "position", _) => "1".to_owned(),
            (other, _) => panic!("`{path}`: the parameter `{other}` has no value: add one"),
        };
        filled = filled.replace(&format!("{{{name}}}"), &value);
    }
    filled
}

/// A user who has signed in with a token.
pub(crate) struct Visitor<'s> {
    server: &'s Server,
    cookie: String,
}

impl<'s> Visitor<'s> {
    pub(crate) async fn sign_in(server: &'s Server, token: &str) -> Self {
        let cookie = String::new();
        let mut visitor = Self { server, cookie };
        let csrf_token = visitor.csrf_token("/login").await;
        let fields = [("csrf_token", csrf_token.as_str()), ("token", token)];
        let response = visitor.request(Method::POST, "/login", &fields).await;
        let cookie = response.header("set-cookie").split(';').next();
        visitor.cookie = cookie.unwrap_or_default().to_owned();
        visitor
    }

    /// Requests a page, or submits a form.
    pub(crate) async fn visit(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Response {
        let method: Method = method.parse().expect("valid method");
        let mut fields = fields.to_vec();
        let csrf_token = match method {
            Method::POST => self.csrf_token("/settings").await,
            _ => String::new(),
        };
        fields.push(("csrf_token", &csrf_token));
        self.request(method, path, &fields).await
    }

    async fn csrf_token(&self, path: &str) -> String {
        let page = self.request(Method::GET, path, &[]).await;
        let token = page.text().split("name=\"csrf_token\" value=\"").nth(1);
        let token = token.and_then(|rest| rest.split('"').next());
        let token = token.unwrap_or_else(|| panic!("no form: {}", page.text()));
        token.to_owned()
    }

    async fn request(&self, method: Method, path: &str, fields: &[(&str, &str)]) -> Response {
        let request = self.server.request(method.clone(), path);
        let mut request = request
            .header("accept", "text/html")
            .header("cookie", &self.cookie);
        if method == Method::POST {
            let fields = fields.iter().map(|(name, value)| format!("{name}={value}"));
            request = request
                .header("origin", &self.server.url)
                .header("content-type", "application/x-www-form-urlencoded")
                .body(fields.collect::<Vec<_>>().join("&"));
        }
        send(request).await
    }
}

/// The method and the first argument of every call of `route` in the sources of the server.
fn routes_in_sources() -> BTreeSet<(String, String)> {
    let mut routes = BTreeSet::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut files, mut folders) = (vec![sources.join("web.rs")], vec![sources.join("web")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    for file in files {
        routes.extend(routes_in(&std::fs::read_to_string(file).unwrap()));
    }
    routes
}

fn routes_in(source: &str) -> Vec<(String, String)> {
    let mut routes = Vec::new();
    for rest in source.split(".route(").skip(1) {
        let (path, handlers) = rest.split_once(',').expect("a path and handlers");
        let path = path.trim().trim_matches('"').to_owned();
        let handlers = handlers.trim_start();
        let handlers = handlers.split(".route(").next().unwrap_or_default();
        let kind = handlers.split('(').next().unwrap_or_default().trim();
        let method = match kind {
            "get" => "GET",
            "post" => "POST",
            "any" | "on" => "ANY",
            other => panic!("`{path}`: unknown method `{other}`"),
        };
        routes.push((method.to_owned(), path.clone()));
        let also_post = handlers
            .lines()
            .next()
            .is_some_and(|line| line.contains(".post("));
        if also_post {
            routes.push(("POST".to_owned(), path));
        }
    }
    routes
}

#[test]
fn every_route_has_an_entry() {
    let listed: BTreeSet<(String, String)> = ROUTES
        .iter()
        .map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()))
        .collect();
    assert_eq!(listed.len(), ROUTES.len(), "an entry is repeated");
    assert_eq!(routes_in_sources(), listed);
}
