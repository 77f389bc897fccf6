//! Sign-in through an identity provider: the code flow, sessions, members, and rejected callbacks
//! and id tokens.
//!
//! The provider runs in this process with a key of `issuer.rs`. The tests send cookies explicitly.

use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::Algorithm;
use onward_testbed::Server;
use onward_testbed::mock_server::{MockServer, Reply};
use reqwest::Method;
use reqwest::header::{COOKIE, HeaderMap, LOCATION, SET_COOKIE};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::issuer::{Key, now};
use crate::program;

const CLIENT_ID: &str = "onward-pages";

/// The fields of a form or query.
type Fields = Vec<(String, String)>;

/// An identity provider with a discovery document, keys and a token endpoint.
struct Provider {
    url: String,
    key: Key,
    server: MockServer,
    /// The status and body of token responses.
    token_response: Arc<Mutex<(u16, Value)>>,
}

impl Provider {
    fn start() -> Self {
        let key = Key::new("a", Algorithm::ES256);
        let public = key.public();
        let token_response = Arc::new(Mutex::new((400, json!({}))));
        let current = Arc::clone(&token_response);
        let server = MockServer::with_handler(move |request| {
            let url = format!("http://{}", request.header("host"));
            match request.path.as_str() {
                "/keys" => Reply::json(&json!({ "keys": [public] })),
                "/token" => {
                    let (status, body) = current.lock().unwrap().clone();
                    Reply::json(&body).with_status(status)
                }
                _ => Reply::json(&json!({
                    "issuer": url,
                    "jwks_uri": format!("{url}/keys"),
                    "authorization_endpoint": format!("{url}/authorize?hint=1"),
                    "token_endpoint": format!("{url}/token"),
                })),
            }
        });
        Self {
            url: server.url.clone(),
            key,
            server,
            token_response,
        }
    }

    fn config(&self) -> String {
        format!(
            "[access.issuer]\nurl = \"{}\"\naudience = \"https://onward.example.org/mcp\"\n\
             scopes = [\"onward\"]\nclient_id = \"{CLIENT_ID}\"\ndefault_role = \"viewer\"",
            self.url
        )
    }

    /// The claims of a valid id token.
    fn claims(&self, nonce: &str) -> Value {
        json!({
            "iss": self.url,
            "aud": CLIENT_ID,
            "sub": "ann",
            "exp": now() + 300,
            "iat": now(),
            "nonce": nonce,
            "role": "member",
        })
    }

    /// Sets the token response to an id token with these claims.
    fn issue(&self, claims: &Value) {
        let id_token = self.key.sign(claims);
        let body = json!({ "id_token": id_token, "access_token": "x", "token_type": "Bearer" });
        *self.token_response.lock().unwrap() = (200, body);
    }

    fn token_requests(&self) -> Vec<(HeaderMap, Fields)> {
        let requests = self.server.requests().into_iter();
        let requests = requests.filter(|request| request.path == "/token");
        requests
            .map(|request| {
                let body = String::from_utf8_lossy(&request.body);
                let form = reqwest::Url::parse(&format!("{}?{body}", self.url));
                let fields = form
                    .expect("valid form")
                    .query_pairs()
                    .into_owned()
                    .collect();
                (request.headers, fields)
            })
            .collect()
    }
}

/// A sign-in that was started and not completed.
struct PendingSignIn {
    /// The query of the redirect to the provider.
    query: Fields,
    /// The cookie that binds the sign-in to the browser.
    cookie: String,
}

impl PendingSignIn {
    fn get(&self, name: &str) -> &str {
        let found = self.query.iter().find(|(field, _)| field == name);
        &found.unwrap_or_else(|| panic!("no `{name}`")).1
    }
}

/// The response to a page request.
struct PageResponse {
    status: u16,
    location: String,
    cookies: Vec<String>,
    text: String,
}

impl PageResponse {
    /// The value of the `Cookie` header that sends this cookie back.
    fn cookie(&self, name: &str) -> Option<String> {
        let set = self.cookies.iter().find(|set| set.starts_with(name))?;
        set.split(';').next().map(str::to_owned)
    }
}

async fn get_page(server: &Server, path: &str, cookie: &str) -> PageResponse {
    let request = server.request(Method::GET, path);
    let request = request.header("accept", "text/html").header(COOKIE, cookie);
    let response = request.send().await.expect("response received");
    let header_values = |name| {
        let values = response.headers().get_all(name).iter();
        let values = values.map(|value| value.to_str().expect("valid UTF-8").to_owned());
        values.collect::<Vec<_>>()
    };
    PageResponse {
        status: response.status().as_u16(),
        location: header_values(LOCATION).pop().unwrap_or_default(),
        cookies: header_values(SET_COOKIE),
        text: response.text().await.expect("body received"),
    }
}

/// Starts a sign-in that returns to the page `back`.
async fn start_sign_in(server: &Server, back: &str) -> PendingSignIn {
    let response = get_page(server, &format!("/login/provider?back={back}"), "").await;
    assert_eq!(response.status, 303, "{}", response.text);
    let url = reqwest::Url::parse(&response.location).expect("address is valid");
    let query = url.query_pairs().into_owned().collect();
    let cookie = response.cookie("onward_sign_in").expect("cookie set");
    let set = &response.cookies[0];
    for part in ["HttpOnly", "SameSite=Lax", "Path=/;", "Max-Age=600"] {
        assert!(set.contains(part), "{set}");
    }
    PendingSignIn { query, cookie }
}

fn callback_path(sign_in: &PendingSignIn) -> String {
    format!("/login/callback?code=c0de&state={}", sign_in.get("state"))
}

/// Asserts an error page with this code, and no session cookie.
#[track_caller]
fn assert_rejected(response: &PageResponse, status: u16, code: &str) {
    assert_eq!(response.status, status, "{}", response.text);
    assert!(
        response.text.contains("<!doctype html>"),
        "the response is a page"
    );
    let code = format!("data-code=\"{code}\"");
    assert!(response.text.contains(&code), "{}", response.text);
    assert_eq!(response.cookie("onward_session"), None);
}

#[tokio::test]
async fn signs_in_through_the_provider_and_out() {
    let provider = Provider::start();
    let server = program("sign-in").with_config(&provider.config()).serve();
    let login = get_page(&server, "/plans", "").await;
    assert_eq!(
        (login.status, login.location.as_str()),
        (303, "/login?back=/plans")
    );
    let page = get_page(&server, "/login?back=/plans", "").await;
    assert!(
        page.text.contains("href=\"/login/provider?back=/plans\""),
        "{}",
        page.text
    );

    let sign_in = start_sign_in(&server, "/reviews").await;
    assert_eq!(
        sign_in.get("hint"),
        "1",
        "the query of the endpoint is kept"
    );
    assert_eq!(sign_in.get("response_type"), "code");
    assert_eq!(sign_in.get("client_id"), CLIENT_ID);
    assert_eq!(sign_in.get("scope"), "openid onward");
    assert_eq!(sign_in.get("code_challenge_method"), "S256");
    let redirect = format!("{}/login/callback", server.url);
    assert_eq!(sign_in.get("redirect_uri"), redirect);

    provider.issue(&provider.claims(sign_in.get("nonce")));
    let response = get_page(&server, &callback_path(&sign_in), &sign_in.cookie).await;
    assert_eq!(response.status, 200, "{}", response.text);
    assert!(
        response.text.contains("content=\"0; url=/reviews\""),
        "{}",
        response.text
    );
    // The token request has the code, the PKCE verifier and the same redirect URI.
    let (headers, fields) = provider
        .token_requests()
        .pop()
        .expect("token request received");
    let field = |name: &str| {
        let found = fields.iter().find(|(field, _)| field == name);
        found.unwrap_or_else(|| panic!("no `{name}`")).1.clone()
    };
    assert_eq!(field("grant_type"), "authorization_code");
    assert_eq!(field("code"), "c0de");
    assert_eq!(field("redirect_uri"), redirect);
    let challenge = Sha256::digest(field("code_verifier").as_bytes());
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(challenge);
    assert_eq!(challenge, sign_in.get("code_challenge"));
    assert!(
        !headers.contains_key("authorization"),
        "no client secret is configured"
    );

    let session = response.cookie("onward_session").expect("session started");
    let set = response
        .cookies
        .iter()
        .find(|set| set.starts_with("onward_session"));
    for part in ["HttpOnly", "SameSite=Strict", "Max-Age=28800"] {
        assert!(set.is_some_and(|set| set.contains(part)), "{set:?}");
    }
    let page = get_page(&server, "/plans", &session).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(page.text.contains("<bdi>ann</bdi>"), "{}", page.text);
    assert!(page.text.contains("member"), "{}", page.text);
    // The session is valid for pages only, not for the API.
    let api = server
        .request(Method::GET, "/api/v1/plans")
        .header(COOKIE, &session);
    assert_eq!(onward_testbed::send(api).await.status.as_u16(), 401);
    // Forms carry a CSRF token.
    let csrf_token = page
        .text
        .split("name=\"csrf_token\" value=\"")
        .nth(1)
        .expect("page has a form");
    let csrf_token = csrf_token.split('"').next().expect("field has a value");
    let sign_out = server
        .request(Method::POST, "/logout")
        .header(COOKIE, &session);
    let sign_out = sign_out.header("content-type", "application/x-www-form-urlencoded");
    let sign_out = sign_out
        .header("accept", "text/html")
        .body(format!("csrf_token={csrf_token}"));
    let sign_out = onward_testbed::send(sign_out).await;
    assert_eq!(sign_out.status, 303);
    assert_eq!(sign_out.header("location"), "/login");
    // A copy of the cookie is rejected.
    let copied = get_page(&server, "/plans", &session).await;
    assert_eq!(copied.location, "/login?back=/plans");
    // The callback cannot be repeated, because the cookie was deleted.
    assert_eq!(
        response.cookie("onward_sign_in").as_deref(),
        Some("onward_sign_in=")
    );
    let again = get_page(&server, &callback_path(&sign_in), "onward_sign_in=").await;
    assert_rejected(&again, 401, "unauthorized");
}

/// The members section of the settings page.
fn members_section(page: &str) -> &str {
    let section = page.split("id=\"members\"").nth(1);
    let section = section.expect("page has a members section");
    section
        .split("</section>")
        .next()
        .expect("section has text")
}

#[tokio::test]
async fn lists_users_as_members_with_their_latest_role() {
    let provider = Provider::start();
    let setup = program("sign-in-members").with_config(&provider.config());
    setup.token("local", "ci", "agent");
    let server = setup.serve();
    let mut session = String::new();
    for (subject, role) in [("ann", "member"), ("ann", "viewer"), ("bob", "admin")] {
        let sign_in = start_sign_in(&server, "/").await;
        let mut claims = provider.claims(sign_in.get("nonce"));
        claims["sub"] = json!(subject);
        claims["role"] = json!(role);
        provider.issue(&claims);
        let response = get_page(&server, &callback_path(&sign_in), &sign_in.cookie).await;
        session = response.cookie("onward_session").expect("session started");
        let page = get_page(&server, "/settings/access", &session).await;
        let is_denied = members_section(&page.text).contains("class=\"reason\"");
        assert_eq!(is_denied, role != "admin", "{}", page.text);
    }
    let page = get_page(&server, "/settings/access", &session).await.text;
    let members = members_section(&page);
    let row = |name: &str| {
        let row = members.split("<tr>").find(|row| row.contains(name));
        row.unwrap_or_else(|| panic!("no {name} in {members}"))
    };
    assert!(row(">ann<").contains("viewer"), "{members}");
    let method = |name: &str| {
        let cell = row(name).split("data-name=\"signs in with\">").nth(1);
        let cell = cell.expect("row has a sign-in method");
        cell.split('<').next().expect("cell has text")
    };
    assert_eq!(method(">ann<"), method(">bob<"));
    assert_ne!(method(">ann<"), method(">ci<"));
    // The current user is marked.
    assert!(row(">bob<").contains("class=\"sub\""), "{members}");
    assert!(!row(">ann<").contains("class=\"sub\""), "{members}");
    assert!(row(">ci<").contains("agent"), "{members}");
    assert_eq!(members.matches(">ann<").count(), 1, "{members}");
}

#[tokio::test]
async fn rejects_callbacks_of_other_browsers() {
    let provider = Provider::start();
    let server = program("sign-in-state")
        .with_config(&provider.config())
        .serve();
    let mine = start_sign_in(&server, "/").await;
    let others = start_sign_in(&server, "/").await;
    assert_ne!(mine.get("state"), others.get("state"));
    assert_ne!(mine.get("nonce"), others.get("nonce"));
    assert_ne!(mine.get("code_challenge"), others.get("code_challenge"));
    provider.issue(&provider.claims(mine.get("nonce")));
    // No cookie, the cookie of another sign-in, and a forged cookie.
    for cookie in ["", &others.cookie, "onward_sign_in=a.b.1.c"] {
        let response = get_page(&server, &callback_path(&mine), cookie).await;
        assert_rejected(&response, 401, "unauthorized");
    }
    let response = get_page(&server, "/login/callback?code=c0de", &mine.cookie).await;
    assert_rejected(&response, 401, "unauthorized");
    assert!(
        provider.token_requests().is_empty(),
        "no code was sent to the provider"
    );
    let error = format!(
        "/login/callback?error=access_denied&error_description=%3Cb%3Eno&state={}",
        mine.get("state")
    );
    let response = get_page(&server, &error, &mine.cookie).await;
    assert_rejected(&response, 401, "unauthorized");
    assert!(response.text.contains("&#60;b&#62;no"), "{}", response.text);
    let iss = format!("{}&iss=https://evil.example", callback_path(&mine));
    let response = get_page(&server, &iss, &mine.cookie).await;
    assert_rejected(&response, 401, "unauthorized");
    // A return address on another host is replaced by the start page.
    let external = start_sign_in(&server, "https://evil.example").await;
    provider.issue(&provider.claims(external.get("nonce")));
    let response = get_page(&server, &callback_path(&external), &external.cookie).await;
    assert!(
        response.text.contains("content=\"0; url=/\""),
        "{}",
        response.text
    );
}

#[tokio::test]
async fn rejects_id_tokens_with_invalid_claims() {
    let provider = Provider::start();
    let server = program("sign-in-claims")
        .with_config(&provider.config())
        .serve();
    // At most ten cases: the server limits callbacks to ten per second.
    let cases = [
        ("nonce", json!("another")),
        ("nonce", Value::Null),
        ("aud", json!("https://onward.example.org/mcp")),
        ("aud", json!(["other-client"])),
        ("aud", json!([CLIENT_ID, "other-client"])),
        ("azp", json!("other-client")),
        ("iss", json!("https://evil.example")),
        ("exp", json!(now() - 3600)),
        ("sub", json!("")),
        ("role", json!("emperor")),
    ];
    for (name, value) in cases {
        let sign_in = start_sign_in(&server, "/").await;
        let mut claims = provider.claims(sign_in.get("nonce"));
        claims[name] = value.clone();
        provider.issue(&claims);
        let response = get_page(&server, &callback_path(&sign_in), &sign_in.cookie).await;
        assert_rejected(&response, 401, "unauthorized");
    }
}

#[tokio::test]
async fn rejects_id_tokens_not_signed_by_the_provider() {
    let provider = Provider::start();
    let server = program("sign-in-signatures")
        .with_config(&provider.config())
        .serve();
    // Signed with another key, unsigned, and not a token.
    let sign_in = start_sign_in(&server, "/").await;
    let claims = provider.claims(sign_in.get("nonce"));
    let forged = Key::new("a", Algorithm::ES256).sign(&claims);
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let unsigned = format!("{}.{}.", part(&json!({ "alg": "none" })), part(&claims));
    for id_token in [forged, unsigned, "x".to_owned()] {
        *provider.token_response.lock().unwrap() = (200, json!({ "id_token": id_token }));
        let response = get_page(&server, &callback_path(&sign_in), &sign_in.cookie).await;
        assert_rejected(&response, 401, "unauthorized");
    }
}

#[tokio::test]
async fn reports_failed_token_requests() {
    let provider = Provider::start();
    let server = program("sign-in-token-errors")
        .with_config(&provider.config())
        .serve();
    let sign_in = start_sign_in(&server, "/").await;
    let claims = provider.claims(sign_in.get("nonce"));
    // An error, a response without an id token, and a missing scope.
    *provider.token_response.lock().unwrap() = (400, json!({ "error": "invalid_grant" }));
    let response = get_page(&server, &callback_path(&sign_in), &sign_in.cookie).await;
    assert_rejected(&response, 401, "unauthorized");
    *provider.token_response.lock().unwrap() = (200, json!({ "access_token": "x" }));
    let response = get_page(&server, &callback_path(&sign_in), &sign_in.cookie).await;
    assert_rejected(&response, 503, "unavailable");
    let id_token = provider.key.sign(&claims);
    let body = json!({ "id_token": id_token, "scope": "openid" });
    *provider.token_response.lock().unwrap() = (200, body);
    let response = get_page(&server, &callback_path(&sign_in), &sign_in.cookie).await;
    assert_rejected(&response, 403, "forbidden");
}

#[tokio::test]
async fn claims_define_tenant_and_role_and_the_client_secret_is_sent() {
    let provider = Provider::start();
    let config = format!(
        "{}\ntenant_claim = \"org\"\nclient_secret = \"s:e cret\"",
        provider.config()
    );
    let setup = program("sign-in-tenant").with_config(&config);
    setup.run_ok(&["tenant", "create", "acme"]);
    let server = setup.serve();
    let complete = async |org: Value, role: Value| {
        let sign_in = start_sign_in(&server, "/").await;
        let mut claims = provider.claims(sign_in.get("nonce"));
        claims["org"] = org;
        claims["role"] = role;
        provider.issue(&claims);
        get_page(&server, &callback_path(&sign_in), &sign_in.cookie).await
    };
    let response = complete(json!("acme"), json!(["everybody", "owner"])).await;
    let session = response.cookie("onward_session").expect("session started");
    let page = get_page(&server, "/settings/limits", &session).await.text;
    assert!(page.contains("<bdi>acme</bdi>"), "{page}");
    assert!(page.contains("owner"), "{page}");
    let (headers, _) = provider
        .token_requests()
        .pop()
        .expect("token request received");
    let expected = format!(
        "Basic {}",
        BASE64_STANDARD.encode(format!("{CLIENT_ID}:s%3Ae+cret"))
    );
    assert_eq!(headers["authorization"], expected);
    let response = complete(json!("unknown"), json!("owner")).await;
    assert_rejected(&response, 401, "unauthorized");
    let response = complete(Value::Null, json!("owner")).await;
    assert_rejected(&response, 401, "unauthorized");
    let config = server.program().run_ok(&["config"]);
    assert!(!config.contains("s:e cret"), "{config}");
}

#[tokio::test]
async fn provider_sign_in_requires_a_client_id() {
    let provider = Provider::start();
    let config = provider.config().replace("client_id", "# client_id");
    let server = program("sign-in-none").with_config(&config).serve();
    let page = get_page(&server, "/login", "").await.text;
    assert!(!page.contains("/login/provider"), "{page}");
    for path in ["/login/provider", "/login/callback?code=a&state=b"] {
        let response = get_page(&server, path, "").await;
        assert!(response.text.contains("data-code=\"not_configured\""));
        assert_eq!(response.cookie("onward_session"), None);
    }
}
