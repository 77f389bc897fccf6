//! An HTTP client that acts like a browser without JavaScript: it keeps the cookie and submits
//! forms.

use std::sync::Mutex;

use onward_testbed::Server;
use reqwest::redirect::Policy;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

pub(crate) struct Browser {
    base: String,
    client: Client,
    cookie: Mutex<Option<String>>,
}

/// A response to a page request.
#[derive(Debug)]
pub(crate) struct PageResponse {
    pub(crate) status: StatusCode,
    /// The redirect target.
    pub(crate) location: String,
    pub(crate) cookie: String,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) html: String,
}

impl PageResponse {
    #[track_caller]
    pub(crate) fn assert_contains(&self, text: &str) {
        assert!(self.html.contains(text), "no `{text}` in: {self:?}");
    }

    #[track_caller]
    pub(crate) fn assert_lacks(&self, text: &str) {
        assert!(!self.html.contains(text), "`{text}` in: {self:?}");
    }

    /// The CSRF token of the forms on this page.
    #[track_caller]
    pub(crate) fn csrf_token(&self) -> String {
        let rest = self.html.split("name=\"csrf_token\" value=\"").nth(1);
        let rest = rest.unwrap_or_else(|| panic!("page has no form: {self:?}"));
        rest.split('"').next().unwrap().to_owned()
    }
}

impl Browser {
    pub(crate) fn new(server: &Server) -> Self {
        let client = Client::builder().redirect(Policy::none()).build();
        Self {
            base: server.url.clone(),
            client: client.expect("client created"),
            cookie: Mutex::new(None),
        }
    }

    /// A browser with a session.
    pub(crate) async fn signed_in(server: &Server, token: &str) -> Self {
        let browser = Self::new(server);
        let csrf_token = browser.get("/login").await.csrf_token();
        let fields = [("token", token), ("csrf_token", &csrf_token)];
        let response = browser.post("/login", &fields).await;
        assert_eq!(response.status, StatusCode::SEE_OTHER, "{response:?}");
        browser
    }

    /// A browser with a copy of the cookie.
    pub(crate) fn copy(&self) -> Self {
        Self {
            base: self.base.clone(),
            client: self.client.clone(),
            cookie: Mutex::new(self.cookie.lock().unwrap().clone()),
        }
    }

    /// A browser with a copy of the cookie, at another server.
    pub(crate) fn copy_to(&self, server: &Server) -> Self {
        Self {
            base: server.url.clone(),
            ..self.copy()
        }
    }

    pub(crate) async fn get(&self, path: &str) -> PageResponse {
        self.send(self.client.get(format!("{}{path}", self.base)))
            .await
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> PageResponse {
        let form: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{name}={}", escaped(value)))
            .collect();
        let request = self
            .client
            .request(Method::POST, format!("{}{path}", self.base))
            .header("origin", &self.base)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.join("&"));
        self.send(request).await
    }

    /// Submits a form of a page with its CSRF token.
    pub(crate) async fn submit(
        &self,
        page: &str,
        to: &str,
        fields: &[(&str, &str)],
    ) -> PageResponse {
        let form = self.get(page).await;
        form.assert_contains(&format!("action=\"{to}\""));
        let csrf_token = form.csrf_token();
        let mut all = vec![("csrf_token", csrf_token.as_str())];
        all.extend_from_slice(fields);
        self.post(to, &all).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> PageResponse {
        let cookie = self.cookie.lock().unwrap().clone();
        let request = match cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        };
        let response = request.header("accept", "text/html,*/*").send().await;
        let response = response.expect("server responded");
        let header = |name: &str| {
            let value = response.headers().get(name);
            value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
        };
        let cookie = header("set-cookie");
        if let Some(pair) = cookie.split(';').next().filter(|pair| !pair.is_empty()) {
            let ended = cookie.contains("Max-Age=0");
            *self.cookie.lock().unwrap() = (!ended).then(|| pair.to_owned());
        }
        PageResponse {
            status: response.status(),
            location: header("location"),
            cookie,
            headers: response.headers().clone(),
            html: response.text().await.expect("body read"),
        }
    }
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Input for a plan with these steps.
pub(crate) fn plan(name: &str, steps: &[&str]) -> Value {
    let steps: Vec<Value> = steps
        .iter()
        .map(|step| json!({ "stepType": "search", "title": step, "instructions": step }))
        .collect();
    json!({ "name": name, "researchQuestion": "Why?", "steps": steps })
}

/// A string field of a response.
#[track_caller]
pub(crate) fn text(value: &Value, field: &str) -> String {
    let text = value[field].as_str();
    text.unwrap_or_else(|| panic!("no `{field}`: {value}"))
        .to_owned()
}
