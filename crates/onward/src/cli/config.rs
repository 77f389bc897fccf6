//! `onward config`: what holds for a run, and where each value came from.

use clap::Args;
use serde::Serialize;

use super::Context;
use crate::config::{self, Config, Setting, Source, loop_control, shown};
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::table::Table;

/// Show the configuration, and where each value came from
///
/// Flags count more than the environment, that more than the project's `onward.toml` (in this
/// directory or the nearest one above), and that more than `$XDG_CONFIG_HOME/onward/config.toml`.
#[derive(Args)]
#[command(after_help = "A configuration file:\n\n  \
    database = \"onward.db\"          # or \"postgres://…\"; also ONWARD_DATABASE, DATABASE_URL\n  \
    tenant = \"local\"                # also ONWARD_TENANT\n\n  \
    [retention]\n  \
    finished_plans_days = 365       # plans that are over; kept for ever without it\n  \
    tool_calls_days = 30            # the log of tool calls; kept for ever without it\n  \
    sessions_days = 90              # what hooks saw of sessions; kept for ever without it\n\n  \
    [loop_control]                  # also ONWARD_LOOP_CONTROL__ON_STALL, and so on\n  \
    progress_stall_threshold = 8    # idle steps in a row that make a stall\n  \
    progress_min_info_gain_length = 60  # characters that an output needs to be news\n  \
    max_steps_per_turn = 0          # 0: no limit of ours\n  \
    on_stall = \"text_only\"          # or \"nudge\", \"warn\", \"off\"\n  \
    progress_rule = \"default\"       # or \"plain\"\n\n  \
    [reviews]\n  \
    form_seconds = 60               # how long an agent's own window asks you; 0: not at all\n\n  \
    [embeddings]                    # search by meaning, too; words alone without it\n  \
    url = \"http://127.0.0.1:11434/v1\"  # `…/embeddings` of Ollama, OpenAI, and others\n  \
    model = \"nomic-embed-text\"      # the key, if any, is ONWARD_EMBEDDINGS_API_KEY\n  \
    dimensions = 768                # as many as the model likes without it\n  \
    batch_size = 32\n  \
    timeout_seconds = 30\n\n  \
    [extraction]                    # for `extract_data`; the agent's own model without it\n  \
    provider = \"openai\"             # or \"anthropic\"; the key is ONWARD_EXTRACTION_API_KEY\n  \
    url = \"http://127.0.0.1:11434/v1\"  # the vendor's own without it\n  \
    model = \"qwen3\"\n  \
    timeout_seconds = 60\n\n  \
    [notify]                        # also ONWARD_NOTIFY_WEBHOOK, and so on\n  \
    webhook = \"https://…\"           # told of findings; see docs/notifications.md\n  \
    secret = \"…\"                    # signs what it is told\n  \
    kinds = [\"stall\", \"review\", \"failure\"]\n\n  \
    [serve]\n  \
    bind = \"127.0.0.1:7171\"         # also ONWARD_SERVE_BIND, and so on for all below\n  \
    public_url = \"https://onward.example.org\"  # behind a reverse proxy\n  \
    allowed_origins = []            # further web pages that may call\n  \
    secret = \"…\"                    # the same for all servers behind one name\n\n  \
    [access]\n  \
    require_tokens = false          # even on this machine\n\n  \
    [access.issuer]                 # an identity provider, beside tokens\n  \
    url = \"https://id.example.org\"\n  \
    audience = \"https://onward.example.org/mcp\"\n  \
    jwks_url = \"https://…\"          # from its discovery document without it\n  \
    client_id = \"onward\"            # people sign in to the dashboard through it\n  \
    client_secret = \"…\"             # where it gave one\n  \
    scopes = []                     # every one of them is needed\n  \
    tenant_claim = \"org\"            # all are of `tenant` without it\n  \
    role_claim = \"role\"\n  \
    default_role = \"agent\"\n\n  \
    [limits]\n  \
    token_calls_per_second = 1000\n  \
    tenant_calls_per_second = 5000\n  \
    body_bytes = 16777216\n  \
    request_seconds = 30\n  \
    requests = 512                  # at once\n  \
    streams = 2000                  # at once")]
pub(crate) struct Show {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
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
    /// Whether there is one: it is not shown.
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
    /// Whether there is one: it is not shown.
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

impl LoopControl {
    fn of(settings: &loop_control::Settings) -> Self {
        let (on_stall, rule) = (&settings.on_stall, &settings.progress_rule);
        Self {
            progress_stall_threshold: value(&settings.progress_stall_threshold),
            progress_min_info_gain_length: value(&settings.progress_min_info_gain_length),
            max_steps_per_turn: value(&settings.max_steps_per_turn),
            on_stall: Value::new(on_stall.value.as_str(), &on_stall.from),
            progress_rule: Value::new(rule.value.as_str(), &rule.from),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Notify {
    /// Its beginning: the rest may be a secret.
    webhook: Value<Option<String>>,
    /// Whether there is one: it is not shown.
    secret: Value<bool>,
    kinds: Value<Vec<&'static str>>,
}

impl Notify {
    fn of(notify: &config::Notify) -> Self {
        let kinds = notify.kinds.value.iter().map(|kind| kind.as_str());
        Self {
            webhook: Value::new(notify.shown(), &notify.webhook.from),
            secret: Value::new(notify.secret.value.is_some(), &notify.secret.from),
            kinds: Value::new(kinds.collect(), &notify.kinds.from),
        }
    }
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
    /// Whether there is one: it is not shown.
    has_key: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Extraction {
    provider: Value<&'static str>,
    url: Value<String>,
    model: Value<Option<String>>,
    timeout_seconds: Value<u32>,
    /// Whether there is one: it is not shown.
    has_key: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Value<T> {
    value: T,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

impl<T> Value<T> {
    fn new(value: T, from: &Source) -> Self {
        let (source, name, file, line) = match from {
            Source::Flag(name) => ("flag", Some(*name), None, None),
            Source::Environment(name) => ("environment", Some(*name), None, None),
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
    Value::new(setting.value.clone(), &setting.from)
}

impl Answer {
    fn of(config: &Config) -> Self {
        let serve = &config.serve;
        let limits = &serve.limits;
        let files = config.files.iter().map(|path| path.display().to_string());
        Self {
            database: Value::new(shown(&config.database.value), &config.database.from),
            tenant: value(&config.tenant),
            retention: Retention {
                finished_plans_days: value(&config.finished_plans_days),
                tool_calls_days: value(&config.tool_calls_days),
                sessions_days: value(&config.sessions_days),
            },
            loop_control: LoopControl::of(&config.loop_control),
            reviews: Reviews {
                form_seconds: value(&config.form_seconds),
            },
            embeddings: Embeddings {
                url: value(&config.embeddings.url),
                model: value(&config.embeddings.model),
                dimensions: value(&config.embeddings.dimensions),
                batch_size: value(&config.embeddings.batch_size),
                timeout_seconds: value(&config.embeddings.timeout_seconds),
                has_key: config.embeddings.key.is_some(),
            },
            extraction: Extraction {
                provider: Value::new(
                    config.extraction.provider.value.as_str(),
                    &config.extraction.provider.from,
                ),
                url: value(&config.extraction.url),
                model: value(&config.extraction.model),
                timeout_seconds: value(&config.extraction.timeout_seconds),
                has_key: config.extraction.key.is_some(),
            },
            notify: Notify::of(&config.notify),
            serve: Serve {
                bind: Value::new(serve.bind.value.to_string(), &serve.bind.from),
                public_url: value(&serve.public_url),
                allowed_origins: value(&serve.allowed_origins),
                secret: Value::new(serve.secret.value.is_some(), &serve.secret.from),
            },
            access: Access {
                require_tokens: value(&serve.require_tokens),
                issuer: serve.issuer.as_ref().map(Issuer::of),
            },
            limits: Limits {
                token_calls_per_second: value(&limits.token_calls_per_second),
                tenant_calls_per_second: value(&limits.tenant_calls_per_second),
                body_bytes: value(&limits.body_bytes),
                request_seconds: value(&limits.request_seconds),
                requests: value(&limits.requests),
                streams: value(&limits.streams),
            },
            files: files.collect(),
        }
    }
}

impl Issuer {
    fn of(issuer: &config::Issuer) -> Self {
        let role = &issuer.default_role;
        Self {
            url: value(&issuer.url),
            audience: value(&issuer.audience),
            jwks_url: value(&issuer.jwks_url),
            client_id: value(&issuer.client_id),
            client_secret: Value::new(
                issuer.client_secret.value.is_some(),
                &issuer.client_secret.from,
            ),
            scopes: value(&issuer.scopes),
            tenant_claim: value(&issuer.tenant_claim),
            role_claim: value(&issuer.role_claim),
            default_role: Value::new(role.value.as_str(), &role.from),
        }
    }
}

pub(super) fn run(cx: &Context) -> Result {
    let config = &cx.config;
    if cx.output.json {
        cx.output.print_json(&Answer::of(config))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["NAME", "VALUE", "FROM"]);
    for (name, value, from) in rows(config) {
        table.row([name.into(), value.into(), from.to_string().into()]);
    }
    cx.output.print(&table.render(cx.output, ""))?;
    if config.files.is_empty() {
        cx.output.say("no configuration file was found");
    }
    Ok(Exit::Done)
}

fn text(text: &Option<String>) -> String {
    text.clone().unwrap_or_else(|| "none".to_owned())
}

fn list(list: &[String]) -> String {
    match list {
        [] => "none".to_owned(),
        list => list.join(" "),
    }
}

type Row<'a> = (&'static str, String, &'a Source);

fn rows(config: &Config) -> Vec<Row<'_>> {
    let days = |setting: &Setting<Option<u32>>| {
        let days = setting.value;
        days.map_or_else(|| "for ever".to_owned(), |days| days.to_string())
    };
    let (plans, calls) = (&config.finished_plans_days, &config.tool_calls_days);
    let sessions = &config.sessions_days;
    let (serve, forms) = (&config.serve, &config.form_seconds);
    let (database, tenant) = (&config.database, &config.tenant);
    let (bind, public, origins) = (&serve.bind, &serve.public_url, &serve.allowed_origins);
    let required = &serve.require_tokens;
    let secret = serve.secret.value.as_ref().map_or("none", |_| "…");
    let mut rows = vec![
        ("database", shown(&database.value), &database.from),
        ("tenant", tenant.value.clone(), &tenant.from),
        ("retention.finished_plans_days", days(plans), &plans.from),
        ("retention.tool_calls_days", days(calls), &calls.from),
        ("retention.sessions_days", days(sessions), &sessions.from),
    ];
    rows.extend(turn_rows(&config.loop_control));
    rows.extend([("reviews.form_seconds", forms.value.to_string(), &forms.from)]);
    rows.extend(model_rows(config));
    rows.extend(notify_rows(&config.notify));
    rows.extend([
        ("serve.bind", bind.value.to_string(), &bind.from),
        ("serve.public_url", text(&public.value), &public.from),
        ("serve.allowed_origins", list(&origins.value), &origins.from),
        ("serve.secret", secret.to_owned(), &serve.secret.from),
        (
            "access.require_tokens",
            required.value.to_string(),
            &required.from,
        ),
    ]);
    rows.extend(issuer_rows(serve));
    rows.extend(limit_rows(serve));
    rows
}

fn model_rows(config: &Config) -> Vec<Row<'_>> {
    let (embeddings, extraction) = (&config.embeddings, &config.extraction);
    let mut rows = vec![
        (
            "embeddings.model",
            text(&embeddings.model.value),
            &embeddings.model.from,
        ),
        (
            "extraction.model",
            text(&extraction.model.value),
            &extraction.model.from,
        ),
    ];
    if let Some(url) = &embeddings.url.value {
        let dimensions = embeddings.dimensions.value;
        let dimensions = dimensions.map_or_else(|| "any".to_owned(), |count| count.to_string());
        let (batch, timeout) = (&embeddings.batch_size, &embeddings.timeout_seconds);
        let more = [
            ("embeddings.url", url.clone(), &embeddings.url.from),
            (
                "embeddings.dimensions",
                dimensions,
                &embeddings.dimensions.from,
            ),
            (
                "embeddings.batch_size",
                batch.value.to_string(),
                &batch.from,
            ),
            (
                "embeddings.timeout_seconds",
                timeout.value.to_string(),
                &timeout.from,
            ),
        ];
        rows.splice(1..1, more);
    }
    if extraction.model.value.is_some() {
        let (provider, timeout) = (&extraction.provider, &extraction.timeout_seconds);
        rows.extend([
            (
                "extraction.provider",
                provider.value.as_str().to_owned(),
                &provider.from,
            ),
            (
                "extraction.url",
                extraction.url.value.clone(),
                &extraction.url.from,
            ),
            (
                "extraction.timeout_seconds",
                timeout.value.to_string(),
                &timeout.from,
            ),
        ]);
    }
    rows
}

fn turn_rows(turns: &loop_control::Settings) -> Vec<Row<'_>> {
    let number = |name, setting: &'_ Setting<u32>| (name, setting.value.to_string());
    let (threshold, length) = (
        &turns.progress_stall_threshold,
        &turns.progress_min_info_gain_length,
    );
    let (steps, on_stall, rule) = (
        &turns.max_steps_per_turn,
        &turns.on_stall,
        &turns.progress_rule,
    );
    let numbers = [
        (
            number("loop_control.progress_stall_threshold", threshold),
            &threshold.from,
        ),
        (
            number("loop_control.progress_min_info_gain_length", length),
            &length.from,
        ),
        (
            number("loop_control.max_steps_per_turn", steps),
            &steps.from,
        ),
    ];
    let numbers = numbers
        .into_iter()
        .map(|((name, value), from)| (name, value, from));
    let words = [
        (
            "loop_control.on_stall",
            on_stall.value.as_str().to_owned(),
            &on_stall.from,
        ),
        (
            "loop_control.progress_rule",
            rule.value.as_str().to_owned(),
            &rule.from,
        ),
    ];
    numbers.chain(words).collect()
}

fn notify_rows(notify: &config::Notify) -> [Row<'_>; 3] {
    let kinds: Vec<String> = notify.kinds.value.iter().map(ToString::to_string).collect();
    let secret = notify.secret.value.as_ref().map_or("none", |_| "…");
    [
        (
            "notify.webhook",
            text(&notify.shown()),
            &notify.webhook.from,
        ),
        ("notify.secret", secret.to_owned(), &notify.secret.from),
        ("notify.kinds", list(&kinds), &notify.kinds.from),
    ]
}

fn issuer_rows(serve: &config::Serve) -> Vec<Row<'_>> {
    let Some(issuer) = &serve.issuer else {
        return vec![("access.issuer", "none".to_owned(), &Source::Default)];
    };
    let (jwks, claim) = (&issuer.jwks_url, &issuer.tenant_claim);
    let (role, scopes) = (&issuer.default_role, &issuer.scopes);
    let (client, secret) = (&issuer.client_id, &issuer.client_secret);
    let shown = secret.value.as_ref().map_or("none", |_| "…");
    vec![
        (
            "access.issuer.url",
            issuer.url.value.clone(),
            &issuer.url.from,
        ),
        (
            "access.issuer.audience",
            issuer.audience.value.clone(),
            &issuer.audience.from,
        ),
        ("access.issuer.jwks_url", text(&jwks.value), &jwks.from),
        ("access.issuer.client_id", text(&client.value), &client.from),
        (
            "access.issuer.client_secret",
            shown.to_owned(),
            &secret.from,
        ),
        ("access.issuer.scopes", list(&scopes.value), &scopes.from),
        (
            "access.issuer.tenant_claim",
            text(&claim.value),
            &claim.from,
        ),
        (
            "access.issuer.role_claim",
            issuer.role_claim.value.clone(),
            &issuer.role_claim.from,
        ),
        (
            "access.issuer.default_role",
            role.value.to_string(),
            &role.from,
        ),
    ]
}

fn limit_rows(serve: &config::Serve) -> Vec<Row<'_>> {
    let limits = &serve.limits;
    let limits = [
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
    ];
    let rows = limits.map(|(name, limit)| (name, limit.value.to_string(), &limit.from));
    rows.into()
}
