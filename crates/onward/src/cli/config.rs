//! `onward config`: the effective configuration, and the source of each value.

use clap::Args;
use serde::Serialize;

use super::Context;
use crate::config::{self, Config, Setting, Source, display_address, loop_control};
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::table::Table;

const EXAMPLE: &str = "\
Environment variables: the path of the key in capitals, with `__` between table and key.
For example, `serve.bind` is ONWARD_SERVE__BIND, and `access.issuer.url` is
ONWARD_ACCESS__ISSUER__URL. Items of a list are separated by spaces.

Example file:

  database = \"onward.db\"          # or \"postgres://…\"; also ONWARD_DATABASE, DATABASE_URL
  tenant = \"local\"                # also ONWARD_TENANT

  [retention]                     # default: keep forever
  finished_plans_days = 365       # completed and failed plans
  tool_calls_days = 30            # log of tool calls
  sessions_days = 90              # inactive agent sessions

  [loop_control]
  progress_stall_threshold = 8    # steps in a row without progress that count as stuck
  progress_min_info_gain_length = 60  # shorter outputs are not new information
  max_steps_per_turn = 0          # 0: no limit
  on_stall = \"text_only\"          # or \"nudge\", \"warn\", \"off\"
  progress_rule = \"default\"       # or \"plain\"

  [reviews]
  form_seconds = 60               # how long the agent shows a review form; 0: no form

  [embeddings]                    # semantic search; without it, full-text search only
  url = \"http://127.0.0.1:11434/v1\"  # an API with `/embeddings`: Ollama, OpenAI, …
  model = \"nomic-embed-text\"      # API key, if required: ONWARD_EMBEDDINGS__API_KEY
  dimensions = 768                # default: the model's own
  batch_size = 32
  timeout_seconds = 30

  [extraction]                    # for `extract_data`; without it, the agent's model
  provider = \"openai\"             # or \"anthropic\"; API key: ONWARD_EXTRACTION__API_KEY
  url = \"http://127.0.0.1:11434/v1\"  # default: the provider's API
  model = \"qwen3\"
  timeout_seconds = 60

  [notify]
  webhook = \"https://…\"           # receives notifications; see docs/notifications.md
  secret = \"…\"                    # signs them; at least 32 random characters
  kinds = [\"stall\", \"review\", \"failure\"]

  [serve]
  bind = \"127.0.0.1:7171\"
  public_url = \"https://onward.example.org\"  # behind a reverse proxy
  allowed_origins = []            # other web origins that may send requests
  secret = \"…\"                    # the same on all servers behind one name

  [access]
  require_tokens = false          # true: also for requests from this machine

  [access.issuer]                 # an identity provider, in addition to tokens
  url = \"https://id.example.org\"
  audience = \"https://onward.example.org/mcp\"
  jwks_url = \"https://…\"          # default: from the discovery document
  client_id = \"onward\"            # enables sign-in to the dashboard
  client_secret = \"…\"             # if the provider issued one
  scopes = []                     # a token needs all of them
  tenant_claim = \"org\"            # default: all users belong to `tenant`
  role_claim = \"role\"
  default_role = \"agent\"

  [limits]
  token_calls_per_second = 1000
  tenant_calls_per_second = 5000
  body_bytes = 16777216
  request_seconds = 30
  requests = 512                  # concurrent
  streams = 2000                  # concurrent";

/// Show the configuration and the source of each value
///
/// Precedence, highest first: flags, environment, the project's `onward.toml` (in this directory or
/// the nearest ancestor), `$XDG_CONFIG_HOME/onward/config.toml`, defaults.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct ConfigCommand {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConfigView {
    database: Value<String>,
    tenant: Value<String>,
    retention: Retention,
    loop_control: LoopControl,
    reviews: Reviews,
    embeddings: Embeddings,
    extraction: Extraction,
    notify: Notify,
    serve: Serve,
    access: Access,
    limits: Limits,
    files: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Serve {
    bind: Value<String>,
    public_url: Value<Option<String>>,
    allowed_origins: Value<Vec<String>>,
    /// Whether it is set; the value is not printed.
    secret: Value<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Access {
    require_tokens: Value<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<Issuer>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Issuer {
    url: Value<String>,
    audience: Value<String>,
    jwks_url: Value<Option<String>>,
    client_id: Value<Option<String>>,
    /// Whether it is set; the value is not printed.
    client_secret: Value<bool>,
    scopes: Value<Vec<String>>,
    tenant_claim: Value<Option<String>>,
    role_claim: Value<String>,
    default_role: Value<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Limits {
    token_calls_per_second: Value<u32>,
    tenant_calls_per_second: Value<u32>,
    body_bytes: Value<u32>,
    request_seconds: Value<u32>,
    requests: Value<u32>,
    streams: Value<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Retention {
    finished_plans_days: Value<Option<u32>>,
    tool_calls_days: Value<Option<u32>>,
    sessions_days: Value<Option<u32>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LoopControl {
    progress_stall_threshold: Value<u32>,
    progress_min_info_gain_length: Value<u32>,
    max_steps_per_turn: Value<u32>,
    on_stall: Value<&'static str>,
    progress_rule: Value<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Notify {
    /// The origin; the rest of the URL may be a secret.
    webhook: Value<Option<String>>,
    /// Whether it is set; the value is not printed.
    secret: Value<bool>,
    kinds: Value<Vec<&'static str>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reviews {
    form_seconds: Value<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Embeddings {
    url: Value<Option<String>>,
    model: Value<Option<String>>,
    dimensions: Value<Option<u32>>,
    batch_size: Value<u32>,
    timeout_seconds: Value<u32>,
    /// Whether it is set; the value is not printed.
    has_key: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Extraction {
    provider: Value<&'static str>,
    url: Value<String>,
    model: Value<Option<String>>,
    timeout_seconds: Value<u32>,
    /// Whether it is set; the value is not printed.
    has_key: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Value<T> {
    value: T,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

impl<T> Value<T> {
    fn new(value: T, source: &Source) -> Self {
        let (source, name, file, line) = match source {
            Source::Flag(name) => ("flag", Some((*name).to_owned()), None, None),
            Source::Environment(name) => ("environment", Some(name.clone()), None, None),
            Source::File { path, line } => {
                ("file", None, Some(path.display().to_string()), Some(*line))
            }
            Source::Default => ("default", None, None, None),
        };
        Self {
            value,
            source,
            name,
            file,
            line,
        }
    }
}

fn value<T: Clone>(setting: &Setting<T>) -> Value<T> {
    Value::new(setting.value.clone(), &setting.source)
}

/// Whether a secret is set.
fn is_set(secret: &Setting<Option<String>>) -> Value<bool> {
    Value::new(secret.value.is_some(), &secret.source)
}

impl From<&Config> for ConfigView {
    fn from(config: &Config) -> Self {
        let files = config.files.iter().map(|path| path.display().to_string());
        let serve = &config.serve;
        Self {
            database: Value::new(
                display_address(&config.database.value),
                &config.database.source,
            ),
            tenant: value(&config.tenant),
            retention: Retention {
                finished_plans_days: value(&config.finished_plans_days),
                tool_calls_days: value(&config.tool_calls_days),
                sessions_days: value(&config.sessions_days),
            },
            loop_control: LoopControl::from(&config.loop_control),
            reviews: Reviews {
                form_seconds: value(&config.form_seconds),
            },
            embeddings: Embeddings::from(&config.embeddings),
            extraction: Extraction::from(&config.extraction),
            notify: Notify::from(&config.notify),
            serve: Serve {
                bind: Value::new(serve.bind.value.to_string(), &serve.bind.source),
                public_url: value(&serve.public_url),
                allowed_origins: value(&serve.allowed_origins),
                secret: is_set(&serve.secret),
            },
            access: Access {
                require_tokens: value(&serve.require_tokens),
                issuer: serve.issuer.as_ref().map(Issuer::from),
            },
            limits: Limits::from(&serve.limits),
            files: files.collect(),
        }
    }
}

impl From<&loop_control::Settings> for LoopControl {
    fn from(settings: &loop_control::Settings) -> Self {
        let (on_stall, rule) = (&settings.on_stall, &settings.progress_rule);
        Self {
            progress_stall_threshold: value(&settings.progress_stall_threshold),
            progress_min_info_gain_length: value(&settings.progress_min_info_gain_length),
            max_steps_per_turn: value(&settings.max_steps_per_turn),
            on_stall: Value::new(on_stall.value.as_str(), &on_stall.source),
            progress_rule: Value::new(rule.value.as_str(), &rule.source),
        }
    }
}

impl From<&config::Embeddings> for Embeddings {
    fn from(embeddings: &config::Embeddings) -> Self {
        Self {
            url: value(&embeddings.url),
            model: value(&embeddings.model),
            dimensions: value(&embeddings.dimensions),
            batch_size: value(&embeddings.batch_size),
            timeout_seconds: value(&embeddings.timeout_seconds),
            has_key: embeddings.key.is_some(),
        }
    }
}

impl From<&config::Extraction> for Extraction {
    fn from(extraction: &config::Extraction) -> Self {
        let provider = &extraction.provider;
        Self {
            provider: Value::new(provider.value.as_str(), &provider.source),
            url: value(&extraction.url),
            model: value(&extraction.model),
            timeout_seconds: value(&extraction.timeout_seconds),
            has_key: extraction.key.is_some(),
        }
    }
}

impl From<&config::Notify> for Notify {
    fn from(notify: &config::Notify) -> Self {
        let kinds = notify.kinds.value.iter().map(|kind| kind.as_str());
        Self {
            webhook: Value::new(notify.display_webhook(), &notify.webhook.source),
            secret: is_set(&notify.secret),
            kinds: Value::new(kinds.collect(), &notify.kinds.source),
        }
    }
}

impl From<&config::Issuer> for Issuer {
    fn from(issuer: &config::Issuer) -> Self {
        let role = &issuer.default_role;
        Self {
            url: value(&issuer.url),
            audience: value(&issuer.audience),
            jwks_url: value(&issuer.jwks_url),
            client_id: value(&issuer.client_id),
            client_secret: is_set(&issuer.client_secret),
            scopes: value(&issuer.scopes),
            tenant_claim: value(&issuer.tenant_claim),
            role_claim: value(&issuer.role_claim),
            default_role: Value::new(role.value.as_str(), &role.source),
        }
    }
}

impl From<&config::Limits> for Limits {
    fn from(limits: &config::Limits) -> Self {
        Self {
            token_calls_per_second: value(&limits.token_calls_per_second),
            tenant_calls_per_second: value(&limits.tenant_calls_per_second),
            body_bytes: value(&limits.body_bytes),
            request_seconds: value(&limits.request_seconds),
            requests: value(&limits.requests),
            streams: value(&limits.streams),
        }
    }
}

pub(super) fn run(cx: &Context) -> Result {
    let config = &cx.config;
    if cx.output.json {
        cx.output.print_json(&ConfigView::from(config))?;
        return Ok(Exit::Done);
    }
    let mut rows = Rows(Table::new(&["KEY", "VALUE", "SOURCE"]));
    rows.add_config(config);
    cx.output.print(&rows.0.render(cx.output, ""))?;
    if config.files.is_empty() {
        cx.output.note("no configuration file found");
    }
    Ok(Exit::Done)
}

/// The text table. Settings of a feature that is off are left out.
struct Rows(Table);

impl Rows {
    fn add(&mut self, key: &str, value: impl ToString, source: &Source) {
        let value = value.to_string();
        self.0
            .row([key.into(), value.into(), source.to_string().into()]);
    }

    fn add_setting(&mut self, key: &str, setting: &Setting<impl ToString>) {
        self.add(key, setting.value.to_string(), &setting.source);
    }

    fn add_optional(&mut self, key: &str, setting: &Setting<Option<impl ToString>>, none: &str) {
        let value = setting.value.as_ref();
        let value = value.map_or_else(|| none.to_owned(), ToString::to_string);
        self.add(key, value, &setting.source);
    }

    fn add_secret(&mut self, key: &str, setting: &Setting<Option<String>>) {
        let value = setting.value.as_ref().map_or("none", |_| "…");
        self.add(key, value, &setting.source);
    }

    fn add_list(&mut self, key: &str, setting: &Setting<Vec<impl ToString>>) {
        let items: Vec<String> = setting.value.iter().map(ToString::to_string).collect();
        let value = if items.is_empty() {
            "none".to_owned()
        } else {
            items.join(" ")
        };
        self.add(key, value, &setting.source);
    }

    fn add_config(&mut self, config: &Config) {
        let (database, serve) = (&config.database, &config.serve);
        self.add(
            "database",
            display_address(&database.value),
            &database.source,
        );
        self.add_setting("tenant", &config.tenant);
        for (key, days) in [
            ("retention.finished_plans_days", &config.finished_plans_days),
            ("retention.tool_calls_days", &config.tool_calls_days),
            ("retention.sessions_days", &config.sessions_days),
        ] {
            self.add_optional(key, days, "forever");
        }
        self.add_loop_control(&config.loop_control);
        self.add_setting("reviews.form_seconds", &config.form_seconds);
        self.add_embeddings(&config.embeddings);
        self.add_extraction(&config.extraction);
        self.add_notify(&config.notify);
        self.add_setting("serve.bind", &serve.bind);
        self.add_optional("serve.public_url", &serve.public_url, "none");
        self.add_list("serve.allowed_origins", &serve.allowed_origins);
        self.add_secret("serve.secret", &serve.secret);
        self.add_setting("access.require_tokens", &serve.require_tokens);
        self.add_issuer(serve.issuer.as_ref());
        self.add_limits(&serve.limits);
    }

    fn add_loop_control(&mut self, settings: &loop_control::Settings) {
        let (on_stall, rule) = (&settings.on_stall, &settings.progress_rule);
        for (key, number) in [
            (
                "loop_control.progress_stall_threshold",
                &settings.progress_stall_threshold,
            ),
            (
                "loop_control.progress_min_info_gain_length",
                &settings.progress_min_info_gain_length,
            ),
            (
                "loop_control.max_steps_per_turn",
                &settings.max_steps_per_turn,
            ),
        ] {
            self.add_setting(key, number);
        }
        self.add(
            "loop_control.on_stall",
            on_stall.value.as_str(),
            &on_stall.source,
        );
        self.add(
            "loop_control.progress_rule",
            rule.value.as_str(),
            &rule.source,
        );
    }

    fn add_embeddings(&mut self, embeddings: &config::Embeddings) {
        self.add_optional("embeddings.model", &embeddings.model, "none");
        if embeddings.url.value.is_none() {
            return;
        }
        self.add_optional("embeddings.url", &embeddings.url, "none");
        self.add_optional("embeddings.dimensions", &embeddings.dimensions, "any");
        self.add_setting("embeddings.batch_size", &embeddings.batch_size);
        self.add_setting("embeddings.timeout_seconds", &embeddings.timeout_seconds);
    }

    fn add_extraction(&mut self, extraction: &config::Extraction) {
        self.add_optional("extraction.model", &extraction.model, "none");
        if extraction.model.value.is_none() {
            return;
        }
        let provider = &extraction.provider;
        self.add(
            "extraction.provider",
            provider.value.as_str(),
            &provider.source,
        );
        self.add_setting("extraction.url", &extraction.url);
        self.add_setting("extraction.timeout_seconds", &extraction.timeout_seconds);
    }

    fn add_notify(&mut self, notify: &config::Notify) {
        let webhook = notify.display_webhook();
        self.add(
            "notify.webhook",
            webhook.unwrap_or_else(|| "none".to_owned()),
            &notify.webhook.source,
        );
        self.add_secret("notify.secret", &notify.secret);
        self.add_list("notify.kinds", &notify.kinds);
    }

    fn add_issuer(&mut self, issuer: Option<&config::Issuer>) {
        let Some(issuer) = issuer else {
            self.add("access.issuer", "none", &Source::Default);
            return;
        };
        self.add_setting("access.issuer.url", &issuer.url);
        self.add_setting("access.issuer.audience", &issuer.audience);
        self.add_optional("access.issuer.jwks_url", &issuer.jwks_url, "none");
        self.add_optional("access.issuer.client_id", &issuer.client_id, "none");
        self.add_secret("access.issuer.client_secret", &issuer.client_secret);
        self.add_list("access.issuer.scopes", &issuer.scopes);
        self.add_optional("access.issuer.tenant_claim", &issuer.tenant_claim, "none");
        self.add_setting("access.issuer.role_claim", &issuer.role_claim);
        self.add_setting("access.issuer.default_role", &issuer.default_role);
    }

    fn add_limits(&mut self, limits: &config::Limits) {
        for (key, limit) in [
            (
                "limits.token_calls_per_second",
                &limits.token_calls_per_second,
            ),
            (
                "limits.tenant_calls_per_second",
                &limits.tenant_calls_per_second,
            ),
            ("limits.body_bytes", &limits.body_bytes),
            ("limits.request_seconds", &limits.request_seconds),
            ("limits.requests", &limits.requests),
            ("limits.streams", &limits.streams),
        ] {
            self.add_setting(key, limit);
        }
    }
}
