//! The table of configuration keys: a struct per table of the file, a row per key. Reading,
//! `onward config`, its JSON, the example in `onward config --help` and `docs/configuration.md` are
//! derived from it.
//!
//! A row is `name: Type = key(kind, default, trust, help)`. The kind validates a value, then serde
//! converts it to the type of the field.

use std::net::SocketAddr;

use onward_core::Role;
use onward_core::call::TimeoutRule;
use onward_core::capture::Mode;
use onward_core::finding;
use onward_core::turn::{OnStall, OnTextLoop, Parts};
use onward_engine::SyncMode;

use super::kind::Kind::{self, *};
use super::values::{
    ApiKey as ApiKeyValue, MessageFormat, ProgressRule, Provider, from_str, list_from_str,
};
use DefaultValue::{Fixed, Unset};
use Trust::{Project, User};

pub(crate) struct Key {
    /// Tables and name in a file, separated by dots.
    pub(crate) path: &'static str,
    pub(crate) table: &'static Table,
    pub(crate) kind: Kind,
    pub(crate) default: DefaultValue,
    pub(super) trust: Trust,
    /// The comment in the example file and the description in the documentation.
    pub(super) help: &'static str,
    /// The value in the example file, as in the environment, if it is not the default.
    pub(super) example: Option<&'static str>,
    /// A key that must be set if this one is.
    pub(super) requires: Option<&'static str>,
}

/// The value of a key that no source sets.
#[derive(Clone, Copy)]
pub(crate) enum DefaultValue {
    /// A value, as it would be written in the environment.
    Fixed(&'static str),
    /// No value, and the words for it.
    Unset(&'static str),
}

/// The files that may set a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Every file, including the `onward.toml` of a cloned repository: thresholds and names.
    Project,
    /// Files that the user trusts: addresses, files, secrets, access rules, deletion of data, and
    /// the switches of features that send texts to an API.
    User,
}

/// A table of the file.
pub(crate) struct Table {
    /// The start of the paths of its keys: the name and a dot, or empty for top-level keys.
    pub(super) prefix: &'static str,
    pub(super) help: &'static str,
    /// The key that enables the feature. Unless it is set, the other keys have no effect.
    pub(crate) switch: Option<&'static str>,
}

macro_rules! tables {
    ($($table:ident($prefix:literal, $help:literal, $switch:expr) {
        $($(#[$attribute:meta])* $field:ident: $type:ty = $key:expr;)*
    })*) => {
        $(#[derive(serde::Deserialize)]
        pub(crate) struct $table {
            $($(#[$attribute])* pub(crate) $field: $type,)*
        }

        impl $table {
            const TABLE: &'static Table = &Table { prefix: $prefix, help: $help, switch: $switch };
        })*
        /// All keys. Those of a table are adjacent.
        pub(super) static KEYS: &[Key] = &[
            $($(Key { path: concat!($prefix, stringify!($field)), table: $table::TABLE, ..$key },)*)*
        ];
    };
}

const DAYS: Kind = Number(1, 36_500);
const LIMIT: Kind = Number(1, 1_000_000_000);
const COUNT: Kind = Number(0, 100_000);
const SECONDS: Kind = Number(1, 600);
const MILLISECONDS: Kind = Number(1, u32::MAX);
const ON_STALL: Kind = Choice(|| OnStall::ALL.map(OnStall::as_str).to_vec());
const CAPTURE: Kind = Choice(|| Mode::ALL.map(Mode::as_str).to_vec());
const ON_TEXT_LOOP: Kind = Choice(|| OnTextLoop::ALL.map(OnTextLoop::as_str).to_vec());
const PART: Kind = Choice(|| Parts::SWITCHES.map(|(name, _)| name).to_vec());
const PROGRESS_RULE: Kind = Choice(|| vec!["default", "plain"]);
const SYNC: Kind = Choice(|| SyncMode::ALL.map(SyncMode::as_str).to_vec());
const PROVIDER: Kind = Choice(|| vec!["openai", "anthropic"]);
const MESSAGE_FORMAT: Kind = Choice(|| vec!["json", "slack", "teams"]);
const FINDING: Kind = Choice(|| finding::Kind::ALL.map(finding::Kind::as_str).to_vec());
const ROLE: Kind = Choice(|| Role::ALL.map(Role::as_str).to_vec());
const OLLAMA: &str = "http://127.0.0.1:11434/v1";

tables! {
    TopLevel("", "before the first table of the file", None) {
        database: Option<String> = key(Database, Unset("~/.local/share/onward/onward.db"), User,
            "a file, or `postgres://…`; also DATABASE_URL").example("onward.db");
        database_connections: usize = key(Number(1, 10_000), Fixed("16"), Project,
            "PostgreSQL: maximum number of connections of a process");
        #[serde(deserialize_with = "from_str")]
        database_sync: SyncMode = key(SYNC, Fixed("response"), User,
            "SQLite: sync a change to disk before its response, or inside its commit");
        tenant: String = key(Text, Fixed("local"), Project, "tenant whose plans to use");
    }
    Retention("retention.", "how long data is kept", None) {
        finished_plans_days: Option<u32> = key(DAYS, Unset("forever"), User, "completed and failed plans")
            .example("365");
        tool_calls_days: u32 = key(Number(0, 36_500), Fixed("30"), User, "request log; 0: forever");
        sessions_days: Option<u32> = key(DAYS, Unset("forever"), User, "inactive agent sessions").example("90");
    }
    Sessions("sessions.", "agent sessions that hooks report", None) {
        keep_prompts: bool = key(Boolean, Fixed("true"), User,
            "store the first 200 characters of the last prompt, without secrets");
    }
    LoopControl("loop_control.", "detection of looping turns", None) {
        progress_stall_threshold: u32 = key(Number(1, 1_000), Fixed("8"), Project,
            "model responses in a row without progress that count as a loop");
        progress_min_info_gain_length: usize = key(COUNT, Fixed("60"), Project,
            "shorter outputs are not new information");
        max_steps_per_turn: u32 = key(COUNT, Fixed("0"), Project,
            "model responses before an answer in text is required; 0: no limit");
        #[serde(deserialize_with = "from_str")]
        on_stall: OnStall = key(ON_STALL, Fixed("text_only"), Project, "strongest reaction to a loop");
        progress_rule: ProgressRule = key(PROGRESS_RULE, Fixed("default"), Project, "rule that detects progress");
        progress_without: Vec<String> = key(List(&PART), Fixed(""), Project,
            "parts of the default rule to switch off");
        stall_wait_minutes: u32 = key(Number(1, 10_000), Fixed("30"), Project,
            "minutes of waiting without a change that count as a loop");
        #[serde(deserialize_with = "from_str")]
        on_text_loop: OnTextLoop = key(ON_TEXT_LOOP, Fixed("warn"), Project,
            "reaction of the proxy to repeated text");
    }
    Capture("capture.", "agents' own task lists, copied into Onward plans; see docs/hooks.md", None) {
        #[serde(deserialize_with = "from_str")]
        plans: Mode = key(CAPTURE, Fixed("on"), Project,
            "`on`: approved plans and task lists; `approved`: approved plans only");
        min_tasks: u32 = key(Number(1, 100), Fixed("3"), Project, "shorter task lists are not captured");
        archive_after_days: u32 = key(Number(1, 36_500), Fixed("14"), Project,
            "days after its last activity in which an unfinished list is still in the default lists");
    }
    Calls("calls.", "timeouts of tool calls; see docs/calls.md", None) {
        default_timeout_ms: u64 = key(MILLISECONDS, Fixed("120000"), Project,
            "timeout of tools for which the agent has no default");
        grace_ms: u64 = key(Number(0, 86_400_000), Fixed("30000"), Project,
            "time after the timeout in which the agent may still report the result");
        #[serde(deserialize_with = "list_from_str")]
        tool_timeouts_ms: Vec<TimeoutRule> = key(List(&ToolTimeout), Fixed(""), Project,
            "timeouts per tool, for one agent or all; a trailing `*` matches any suffix; 0: no timeout")
            .example("Bash=600000 kimi/mcp__*=60000");
    }
    Watch("watch.", "plans that no agent works on", None) {
        no_agent_after_minutes: u32 = key(Number(1, 525_600), Fixed("10"), Project,
            "minutes without agent activity after which a plan with a ready step is shown as `no agent`");
    }
    Reviews("reviews.", "reviews that agents request", None) {
        form_seconds: u32 = key(Number(0, 60), Fixed("60"), Project,
            "how long a call waits for the decision in a review form or on the review page; 0: neither");
    }
    Embeddings("embeddings.", "semantic search; without it, full-text search only", Some("embeddings.model")) {
        url: String = key(Endpoint("embeddings.api_key"), Unset("none"), User,
            "an API with `/embeddings`: Ollama, OpenAI, …").example(OLLAMA).requires("embeddings.model");
        model: String = key(Text, Unset("none"), User, "name of the model in that API")
            .example("nomic-embed-text").requires("embeddings.url");
        dimensions: Option<u32> = key(Number(1, 16_384), Unset("the model's own"), Project, "length of the vectors")
            .example("768");
        batch_size: u32 = key(Number(1, 2_048), Fixed("32"), Project, "texts per request");
        timeout_seconds: u32 = key(SECONDS, Fixed("30"), Project, "timeout of a request");
        api_key: Option<ApiKeyValue> = key(ApiKey, Unset("none"), User, "if the API requires one");
    }
    Extraction("extraction.", "for `extract_data`; without it, the agent's model", Some("extraction.model")) {
        provider: Provider = key(PROVIDER, Fixed("openai"), User, "kind of API");
        url: String = key(Endpoint("extraction.api_key"), Unset("the provider's API"), User, "base URL of the API")
            .example(OLLAMA).requires("extraction.model");
        model: String = key(Text, Unset("none"), User, "name of the model in that API").example("qwen3");
        timeout_seconds: u32 = key(SECONDS, Fixed("60"), Project, "timeout of a request");
        api_key: Option<ApiKeyValue> = key(ApiKey, Unset("none"), User, "if the API requires one");
    }
    Notify("notify.", "notifications; see docs/notifications.md", None) {
        webhook: Option<String> = key(Webhook, Unset("none"), User, "receives the notifications").example("https://…");
        secret: Option<String> = key(Secret(32), Unset("none"), User, "signs the notifications").example("…");
        #[serde(deserialize_with = "list_from_str")]
        kinds: Vec<finding::Kind> = key(List(&FINDING), Fixed("stall review failure no_agent budget blocked"), Project, "kinds of notifications to send");
        format: MessageFormat = key(MESSAGE_FORMAT, Fixed("json"), User,
            "format of the notifications");
        link_valid_hours: u32 = key(Number(0, 8_760), Fixed("72"), User,
            "how long a decision link of a review is valid; 0: no links");
    }
    Serve("serve.", "`onward serve`; see docs/serve.md", None) {
        bind: SocketAddr = key(Bind, Fixed("127.0.0.1:7171"), User, "address to listen on; port 0 selects a free port");
        public_url: Option<String> = key(Origin, Unset("none"), User, "external URL behind a reverse proxy")
            .example("https://onward.example.org");
        allowed_origins: Vec<String> = key(List(&Origin), Fixed(""), User, "other web origins that may send requests");
        secret: Option<String> = key(Secret(32), Unset("none"), User, "signs sessions and forms; equal on all servers")
            .example("…");
    }
    Access("access.", "authentication of requests", None) {
        require_tokens: bool = key(Boolean, Fixed("false"), User, "true: require a token also from this machine");
    }
    Issuer("access.issuer.", "an identity provider, in addition to tokens", Some("access.issuer.url")) {
        url: String = key(Url, Unset("none"), User, "`iss` claim of the tokens")
            .example("https://id.example.org").requires("access.issuer.audience");
        audience: String = key(Text, Unset("none"), User, "required `aud` claim")
            .example("https://onward.example.org/mcp").requires("access.issuer.url");
        jwks_url: Option<String> = key(Url, Unset("none"), User, "if unset, from the discovery document")
            .example("https://…");
        client_id: Option<String> = key(Text, Unset("none"), User, "enables sign-in to the dashboard")
            .example("onward");
        client_secret: Option<String> = key(Secret(1), Unset("none"), User, "if the provider issued one")
            .example("…").requires("access.issuer.client_id");
        scopes: Vec<String> = key(List(&Text), Fixed(""), User, "a token needs all of them");
        tenant_claim: Option<String> = key(Text, Unset("none"), User, "if unset, all users belong to `tenant`")
            .example("org");
        role_claim: String = key(Text, Fixed("role"), User, "claim with the role");
        #[serde(deserialize_with = "from_str")]
        default_role: Role = key(ROLE, Fixed("agent"), User, "role if the claim is missing");
    }
    Limits("limits.", "limits of one server", None) {
        token_calls_per_second: u32 = key(LIMIT, Fixed("1000"), Project, "calls with one token");
        tenant_calls_per_second: u32 = key(LIMIT, Fixed("5000"), Project, "calls of one tenant");
        body_bytes: u32 = key(LIMIT, Fixed("16777216"), Project, "size of a request body");
        request_seconds: u32 = key(LIMIT, Fixed("30"), Project, "timeout of a request");
        requests: u32 = key(LIMIT, Fixed("512"), Project, "concurrent requests");
        streams: u32 = key(LIMIT, Fixed("2000"), Project, "concurrent streams");
        sessions: u32 = key(LIMIT, Fixed("5000"), Project, "MCP sessions");
        tenant_stored_mib: Option<u32> = key(LIMIT, Unset("none"), Project, "MiB of stored texts of one tenant")
            .example("10000");
    }
}

/// A key without a path and a table, which the macro adds.
const fn key(kind: Kind, default: DefaultValue, trust: Trust, help: &'static str) -> Key {
    Key {
        path: "",
        table: TopLevel::TABLE,
        kind,
        default,
        trust,
        help,
        example: None,
        requires: None,
    }
}

impl Key {
    const fn example(mut self, example: &'static str) -> Self {
        self.example = Some(example);
        self
    }

    const fn requires(mut self, path: &'static str) -> Self {
        self.requires = Some(path);
        self
    }

    /// The name within its table.
    pub(super) fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// The environment variable, with a separator between tables and name. The separator is `__`;
    /// `_` gives the deprecated name.
    pub(super) fn variable(&self, separator: &str) -> String {
        format!(
            "ONWARD_{}",
            self.path.replace('.', separator).to_uppercase()
        )
    }
}

impl Table {
    /// The name in the file; empty for top-level keys.
    pub(super) fn name(&self) -> &'static str {
        self.prefix.trim_end_matches('.')
    }
}
