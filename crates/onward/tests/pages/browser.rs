//! A browser without a script: it asks for pages, keeps the cookie, and fills in forms.

use std::sync::Mutex;

use reqwest::redirect::Policy;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::house::Server;

/// Somebody in front of a browser.
pub(crate) struct Browser {
    base: String,
    client: Client,
    cookie: Mutex<Option<String>>,
}

/// What they see.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) status: StatusCode,
    /// Where they are led on to.
    pub(crate) to: String,
    pub(crate) cookie: String,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) html: String,
}

impl Seen {
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) {
        assert!(self.html.contains(text), "no `{text}` in: {self:?}");
    }

    #[track_caller]
    pub(crate) fn hides(&self, text: &str) {
        assert!(!self.html.contains(text), "`{text}` in: {self:?}");
    }

    /// The mark that the forms of this page carry.
    #[track_caller]
    pub(crate) fn mark(&self) -> String {
        let rest = self.html.split("name=\"mark\" value=\"").nth(1);
        let rest = rest.unwrap_or_else(|| panic!("no form: {self:?}"));
        rest.split('"').next().unwrap().to_owned()
    }
}

impl Browser {
    pub(crate) fn at(server: &Server) -> Self {
        let client = Client::builder().redirect(Policy::none()).build();
        Self {
            base: server.url.clone(),
            client: client.expect("a client"),
            cookie: Mutex::new(None),
        }
    }

    /// Somebody who signed in.
    pub(crate) async fn signed_in(server: &Server, token: &str) -> Self {
        let browser = Self::at(server);
        let mark = browser.get("/login").await.mark();
        let fields = [("token", token), ("mark", &mark)];
        let seen = browser.post("/login", &fields).await;
        assert_eq!(seen.status, StatusCode::SEE_OTHER, "{seen:?}");
        browser
    }

    pub(crate) async fn get(&self, path: &str) -> Seen {
        self.send(self.client.get(format!("{}{path}", self.base)))
            .await
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Seen {
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

    /// Fills in a form of a page and sends it.
    pub(crate) async fn fill(&self, page: &str, to: &str, fields: &[(&str, &str)]) -> Seen {
        let shown = self.get(page).await;
        shown.shows(&format!("action=\"{to}\""));
        let mark = shown.mark();
        let mut all = vec![("mark", mark.as_str())];
        all.extend_from_slice(fields);
        self.post(to, &all).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Seen {
        let cookie = self.cookie.lock().unwrap().clone();
        let request = match cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        };
        let answer = request.header("accept", "text/html,*/*").send().await;
        let answer = answer.expect("it answers");
        let header = |name: &str| {
            let value = answer.headers().get(name);
            value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
        };
        let cookie = header("set-cookie");
        if let Some(pair) = cookie.split(';').next().filter(|pair| !pair.is_empty()) {
            let ended = cookie.contains("Max-Age=0");
            *self.cookie.lock().unwrap() = (!ended).then(|| pair.to_owned());
        }
        Seen {
            status: answer.status(),
            to: header("location"),
            cookie,
            headers: answer.headers().clone(),
            html: answer.text().await.expect("it can be read"),
        }
    }
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A plan with these steps, named by their instructions.
pub(crate) fn plan(name: &str, steps: &[&str]) -> Value {
    let steps: Vec<Value> = steps
        .iter()
        .map(|step| json!({ "stepType": "search", "title": step, "instructions": step }))
        .collect();
    json!({ "name": name, "researchQuestion": "Why?", "steps": steps })
}

/// What a field of an answer says.
#[track_caller]
pub(crate) fn text(value: &Value, field: &str) -> String {
    let text = value[field].as_str();
    text.unwrap_or_else(|| panic!("no `{field}`: {value}"))
        .to_owned()
}
