//! Signing in through the identity provider: as whom, and everything about it that must not be believed.
//!
//! The provider is `issuer.rs`; the browser is a client that keeps cookies as this file says.

use std::sync::{Arc, Mutex};

use axum::extract::{Form, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::Algorithm;
use reqwest::Method;
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::house::{House, Server};
use crate::issuer::{Key, now};

const CLIENT: &str = "onward-pages";

/// What the provider was asked for with a code.
type Fields = Vec<(String, String)>;

/// An identity provider with the two addresses that signing in needs.
struct Provider {
    url: String,
    key: Key,
    desk: Arc<Desk>,
}

struct Desk {
    url: Mutex<String>,
    public: Value,
    /// What it answers to the next code.
    answer: Mutex<(u16, Value)>,
    asked: Mutex<Vec<(HeaderMap, Fields)>>,
}

async fn discovery(State(desk): State<Arc<Desk>>) -> Json<Value> {
    let url = desk.url.lock().unwrap().clone();
    Json(json!({
        "issuer": url,
        "jwks_uri": format!("{url}/keys"),
        "authorization_endpoint": format!("{url}/authorize?hint=1"),
        "token_endpoint": format!("{url}/token"),
    }))
}

async fn keys(State(desk): State<Arc<Desk>>) -> Json<Value> {
    Json(json!({ "keys": [desk.public] }))
}

async fn token(
    State(desk): State<Arc<Desk>>,
    headers: HeaderMap,
    Form(fields): Form<Fields>,
) -> Response {
    desk.asked.lock().unwrap().push((headers, fields));
    let (status, answer) = desk.answer.lock().unwrap().clone();
    let status = StatusCode::from_u16(status).expect("a status");
    (status, Json(answer)).into_response()
}

impl Provider {
    async fn start() -> Self {
        let key = Key::new("a", Algorithm::ES256);
        let desk = Arc::new(Desk {
            url: Mutex::default(),
            public: key.public(),
            answer: Mutex::new((400, json!({}))),
            asked: Mutex::default(),
        });
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .with_state(Arc::clone(&desk));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        desk.url.lock().unwrap().clone_from(&url);
        Self { url, key, desk }
    }

    fn lines(&self) -> String {
        format!(
            "[access.issuer]\nurl = \"{}\"\naudience = \"https://onward.example.org/mcp\"\n\
             scopes = [\"onward\"]\nclient_id = \"{CLIENT}\"\ndefault_role = \"viewer\"",
            self.url
        )
    }

    /// What a good id token says.
    fn claims(&self, nonce: &str) -> Value {
        json!({
            "iss": self.url,
            "aud": CLIENT,
            "sub": "ann",
            "exp": now() + 300,
            "iat": now(),
            "nonce": nonce,
            "role": "member",
        })
    }

    fn gives(&self, claims: &Value) {
        let id_token = self.key.sign(claims);
        let answer = json!({ "id_token": id_token, "access_token": "x", "token_type": "Bearer" });
        *self.desk.answer.lock().unwrap() = (200, answer);
    }

    fn asked(&self) -> Vec<(HeaderMap, Fields)> {
        self.desk.asked.lock().unwrap().clone()
    }
}

/// A browser that is on the way.
struct Journey {
    /// What the provider was told.
    query: Fields,
    /// The cookie that knows the way back.
    cookie: String,
}

impl Journey {
    fn get(&self, name: &str) -> &str {
        let found = self.query.iter().find(|(field, _)| field == name);
        &found.unwrap_or_else(|| panic!("no `{name}`")).1
    }
}

/// An answer as a browser sees it.
struct Seen {
    status: u16,
    location: String,
    cookies: Vec<String>,
    text: String,
}

impl Seen {
    /// The cookie of this name, as it is sent back.
    fn cookie(&self, name: &str) -> Option<String> {
        let set = self.cookies.iter().find(|set| set.starts_with(name))?;
        set.split(';').next().map(str::to_owned)
    }
}

async fn see(server: &Server, path: &str, cookie: &str) -> Seen {
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .expect("a client");
    let request = client.get(format!("{}{path}", server.url));
    let request = request.header("accept", "text/html").header(COOKIE, cookie);
    let response = request.send().await.expect("it answers");
    let all = |name| {
        let values = response.headers().get_all(name).iter();
        let values = values.map(|value| value.to_str().expect("text").to_owned());
        values.collect::<Vec<_>>()
    };
    Seen {
        status: response.status().as_u16(),
        location: all(LOCATION).pop().unwrap_or_default(),
        cookies: all(SET_COOKIE),
        text: response.text().await.expect("a page"),
    }
}

/// Somebody presses the button.
async fn begin(server: &Server, back: &str) -> Journey {
    let seen = see(server, &format!("/login/provider?back={back}"), "").await;
    assert_eq!(seen.status, 303, "{}", seen.text);
    let url = reqwest::Url::parse(&seen.location).expect("an address");
    let query = url.query_pairs().into_owned().collect();
    let cookie = seen.cookie("onward_sign_in").expect("a cookie");
    let set = &seen.cookies[0];
    for part in ["HttpOnly", "SameSite=Lax", "Path=/login", "Max-Age=600"] {
        assert!(set.contains(part), "{set}");
    }
    Journey { query, cookie }
}

fn way_back(journey: &Journey) -> String {
    format!("/login/callback?code=c0de&state={}", journey.get("state"))
}

/// A page that says why not, and no session.
#[track_caller]
fn refused(seen: &Seen, status: u16, why: &str) {
    assert_eq!(seen.status, status, "{}", seen.text);
    assert!(seen.text.contains("<!doctype html>"), "it is a page");
    assert!(seen.text.contains(why), "{}", seen.text);
    assert_eq!(seen.cookie("onward_session"), None);
}

#[tokio::test]
async fn somebody_signs_in_through_the_provider_looks_acts_and_signs_out() {
    let provider = Provider::start().await;
    let server = House::new("sign-in").configured(&provider.lines()).serve();
    let login = see(&server, "/plans", "").await;
    assert_eq!(
        (login.status, login.location.as_str()),
        (303, "/login?back=/plans")
    );
    let page = see(&server, "/login?back=/plans", "").await;
    assert!(
        page.text.contains("href=\"/login/provider?back=/plans\""),
        "{}",
        page.text
    );

    let journey = begin(&server, "/reviews").await;
    assert_eq!(journey.get("hint"), "1", "what stood there stays");
    assert_eq!(journey.get("response_type"), "code");
    assert_eq!(journey.get("client_id"), CLIENT);
    assert_eq!(journey.get("scope"), "openid onward");
    assert_eq!(journey.get("code_challenge_method"), "S256");
    let redirect = format!("{}/login/callback", server.url);
    assert_eq!(journey.get("redirect_uri"), redirect);

    provider.gives(&provider.claims(journey.get("nonce")));
    let seen = see(&server, &way_back(&journey), &journey.cookie).await;
    assert_eq!(seen.status, 200, "{}", seen.text);
    assert!(
        seen.text.contains("content=\"0; url=/reviews\""),
        "{}",
        seen.text
    );
    // The code went there with the verifier of this journey, and the same way back.
    let (headers, fields) = provider.asked().pop().expect("it was asked");
    let field = |name: &str| {
        let found = fields.iter().find(|(field, _)| field == name);
        found.unwrap_or_else(|| panic!("no `{name}`")).1.clone()
    };
    assert_eq!(field("grant_type"), "authorization_code");
    assert_eq!(field("code"), "c0de");
    assert_eq!(field("redirect_uri"), redirect);
    let challenge = Sha256::digest(field("code_verifier").as_bytes());
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(challenge);
    assert_eq!(challenge, journey.get("code_challenge"));
    assert!(!headers.contains_key("authorization"), "there is no secret");

    let session = seen.cookie("onward_session").expect("a session");
    let set = seen
        .cookies
        .iter()
        .find(|set| set.starts_with("onward_session"));
    for part in ["HttpOnly", "SameSite=Strict", "Max-Age=28800"] {
        assert!(set.is_some_and(|set| set.contains(part)), "{set:?}");
    }
    let page = see(&server, "/plans", &session).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(page.text.contains("user:ann"), "{}", page.text);
    assert!(page.text.contains("member"), "{}", page.text);
    // A session opens pages, and not the API.
    let api = server
        .ask(Method::GET, "/api/v1/plans")
        .header(COOKIE, &session);
    assert_eq!(crate::house::send(api).await.status.as_u16(), 401);
    // Forms carry their mark, as for everybody else.
    let mark = page
        .text
        .split("name=\"mark\" value=\"")
        .nth(1)
        .expect("a mark");
    let mark = mark.split('"').next().expect("a mark");
    let out = server.ask(Method::POST, "/logout").header(COOKIE, &session);
    let out = out.header("content-type", "application/x-www-form-urlencoded");
    let out = out
        .header("accept", "text/html")
        .body(format!("mark={mark}"));
    let out = server.client.execute(out.build().expect("a request")).await;
    let out = out.expect("it answers");
    assert!(out.url().path() == "/login", "{}", out.url());
    // The same way back a second time leads nowhere without the cookie.
    assert_eq!(
        seen.cookie("onward_sign_in").as_deref(),
        Some("onward_sign_in=")
    );
    let again = see(&server, &way_back(&journey), "onward_sign_in=").await;
    refused(&again, 401, "did not begin to sign in here");
}

#[tokio::test]
async fn whoever_signed_in_is_a_member_with_the_role_they_had_last() {
    let provider = Provider::start().await;
    let house = House::new("sign-in-members").configured(&provider.lines());
    house.token("local", "ci", "agent");
    let server = house.serve();
    let mut session = String::new();
    for (subject, role) in [("ann", "member"), ("ann", "viewer"), ("bob", "admin")] {
        let journey = begin(&server, "/").await;
        let mut claims = provider.claims(journey.get("nonce"));
        claims["sub"] = json!(subject);
        claims["role"] = json!(role);
        provider.gives(&claims);
        let seen = see(&server, &way_back(&journey), &journey.cookie).await;
        session = seen.cookie("onward_session").expect("a session");
        let page = see(&server, "/settings", &session).await;
        let is_told = page.text.contains("may not manage members");
        assert_eq!(is_told, role != "admin", "{}", page.text);
    }
    let page = see(&server, "/settings", &session).await.text;
    let members = page.split("id=\"members\"").nth(1).expect("members");
    let members = members.split("</section>").next().expect("members");
    let row = |name: &str| {
        let row = members.split("<tr>").find(|row| row.contains(name));
        row.unwrap_or_else(|| panic!("no {name} in {members}"))
    };
    assert!(row("user:ann").contains("viewer"), "{members}");
    assert!(row("user:ann").contains("identity provider"), "{members}");
    assert!(row("user:bob").contains(">you<"), "{members}");
    assert!(row("token:ci").contains("agent"), "{members}");
    assert_eq!(members.matches("user:ann").count(), 1, "{members}");
}

#[tokio::test]
async fn a_way_back_counts_for_the_browser_that_began() {
    let provider = Provider::start().await;
    let server = House::new("sign-in-state")
        .configured(&provider.lines())
        .serve();
    let mine = begin(&server, "/").await;
    let others = begin(&server, "/").await;
    assert_ne!(mine.get("state"), others.get("state"));
    assert_ne!(mine.get("nonce"), others.get("nonce"));
    assert_ne!(mine.get("code_challenge"), others.get("code_challenge"));
    provider.gives(&provider.claims(mine.get("nonce")));
    let strange = "did not begin to sign in here";
    // Without a cookie; with somebody else's; with one that somebody made up.
    for cookie in ["", &others.cookie, "onward_sign_in=a.b.1.c"] {
        let seen = see(&server, &way_back(&mine), cookie).await;
        refused(&seen, 401, strange);
    }
    let seen = see(&server, "/login/callback?code=c0de", &mine.cookie).await;
    refused(&seen, 401, strange);
    assert!(provider.asked().is_empty(), "no code went anywhere");
    let error = format!(
        "/login/callback?error=access_denied&error_description=%3Cb%3Eno&state={}",
        mine.get("state")
    );
    let seen = see(&server, &error, &mine.cookie).await;
    refused(&seen, 401, "The identity provider says: &#60;b&#62;no.");
    let iss = format!("{}&iss=https://evil.example", way_back(&mine));
    let seen = see(&server, &iss, &mine.cookie).await;
    refused(&seen, 401, "Another identity provider answered");
    // And one that leads back to elsewhere leads to the first page.
    let away = begin(&server, "https://evil.example").await;
    provider.gives(&provider.claims(away.get("nonce")));
    let seen = see(&server, &way_back(&away), &away.cookie).await;
    assert!(seen.text.contains("content=\"0; url=/\""), "{}", seen.text);
}

#[tokio::test]
async fn an_id_token_that_is_not_for_this_is_not_believed() {
    let provider = Provider::start().await;
    let server = House::new("sign-in-claims")
        .configured(&provider.lines())
        .serve();
    // No more than may come within a second: a server takes ten ways back in that time.
    let cases = [
        ("nonce", json!("another")),
        ("nonce", Value::Null),
        ("aud", json!("https://onward.example.org/mcp")),
        ("aud", json!(["someone-else"])),
        ("aud", json!([CLIENT, "someone-else"])),
        ("azp", json!("someone-else")),
        ("iss", json!("https://evil.example")),
        ("exp", json!(now() - 3600)),
        ("sub", json!("")),
        ("role", json!("emperor")),
    ];
    for (name, value) in cases {
        let journey = begin(&server, "/").await;
        let mut claims = provider.claims(journey.get("nonce"));
        claims[name] = value.clone();
        provider.gives(&claims);
        let seen = see(&server, &way_back(&journey), &journey.cookie).await;
        refused(&seen, 401, "begin again");
    }
}

#[tokio::test]
async fn an_id_token_that_the_provider_did_not_sign_is_not_believed() {
    let provider = Provider::start().await;
    let server = House::new("sign-in-signatures")
        .configured(&provider.lines())
        .serve();
    // Signed by somebody else, and by nobody.
    let journey = begin(&server, "/").await;
    let claims = provider.claims(journey.get("nonce"));
    let forged = Key::new("a", Algorithm::ES256).sign(&claims);
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let unsigned = format!("{}.{}.", part(&json!({ "alg": "none" })), part(&claims));
    for id_token in [forged, unsigned, "x".to_owned()] {
        *provider.desk.answer.lock().unwrap() = (200, json!({ "id_token": id_token }));
        let seen = see(&server, &way_back(&journey), &journey.cookie).await;
        refused(&seen, 401, "begin again");
    }
}

#[tokio::test]
async fn an_answer_of_the_provider_that_lets_nobody_in_is_told() {
    let provider = Provider::start().await;
    let server = House::new("sign-in-answers")
        .configured(&provider.lines())
        .serve();
    let journey = begin(&server, "/").await;
    let claims = provider.claims(journey.get("nonce"));
    // A refusal, an answer without a token, a scope that was not granted.
    *provider.desk.answer.lock().unwrap() = (400, json!({ "error": "invalid_grant" }));
    let seen = see(&server, &way_back(&journey), &journey.cookie).await;
    refused(&seen, 401, "does not accept what it gave");
    *provider.desk.answer.lock().unwrap() = (200, json!({ "access_token": "x" }));
    let seen = see(&server, &way_back(&journey), &journey.cookie).await;
    refused(&seen, 503, "it gives no id token");
    let id_token = provider.key.sign(&claims);
    let answer = json!({ "id_token": id_token, "scope": "openid" });
    *provider.desk.answer.lock().unwrap() = (200, answer);
    let seen = see(&server, &way_back(&journey), &journey.cookie).await;
    refused(&seen, 403, "did not grant onward");
}

#[tokio::test]
async fn claims_say_the_tenant_and_the_role_and_a_secret_goes_along() {
    let provider = Provider::start().await;
    let lines = format!(
        "{}\ntenant_claim = \"org\"\nclient_secret = \"s:e cret\"",
        provider.lines()
    );
    let house = House::new("sign-in-tenant").configured(&lines);
    house.prints(&["tenant", "create", "acme"]);
    let server = house.serve();
    let enter = async |org: Value, role: Value| {
        let journey = begin(&server, "/").await;
        let mut claims = provider.claims(journey.get("nonce"));
        claims["org"] = org;
        claims["role"] = role;
        provider.gives(&claims);
        see(&server, &way_back(&journey), &journey.cookie).await
    };
    let seen = enter(json!("acme"), json!(["everybody", "owner"])).await;
    let session = seen.cookie("onward_session").expect("a session");
    let page = see(&server, "/settings", &session).await.text;
    assert!(page.contains("<bdi>acme</bdi>"), "{page}");
    assert!(page.contains("owner"), "{page}");
    let (headers, _) = provider.asked().pop().expect("it was asked");
    let expected = format!(
        "Basic {}",
        BASE64_STANDARD.encode(format!("{CLIENT}:s%3Ae+cret"))
    );
    assert_eq!(headers["authorization"], expected);
    let seen = enter(json!("nowhere"), json!("owner")).await;
    refused(&seen, 401, "names no tenant");
    let seen = enter(Value::Null, json!("owner")).await;
    refused(&seen, 401, "names no tenant");
    let shown = server.house.prints(&["config"]);
    assert!(!shown.contains("s:e cret"), "{shown}");
}

#[tokio::test]
async fn without_a_client_there_is_no_such_way() {
    let provider = Provider::start().await;
    let lines = provider.lines().replace("client_id", "# client_id");
    let server = House::new("sign-in-none").configured(&lines).serve();
    let page = see(&server, "/login", "").await.text;
    assert!(!page.contains("/login/provider"), "{page}");
    for path in ["/login/provider", "/login/callback?code=a&state=b"] {
        let seen = see(&server, path, "").await;
        assert!(
            seen.text
                .contains("Nobody signs in through an identity provider")
        );
        assert_eq!(seen.cookie("onward_session"), None);
    }
}
