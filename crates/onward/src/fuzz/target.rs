//! The targets, each with its seeds.

use std::ops::ControlFlow;

use clap::{Args, FromArgMatches, ValueEnum};
use onward_core::Timestamp;
use onward_core::condition::{Condition, PlanScope, Scope, StepScope};
use onward_core::search;
use onward_core::transcript::Api;
use onward_engine::engine::Settings;
use onward_engine::{Address, Caller, Engine};
use onward_testbed::TestDir;
use rmcp::model::{ClientRequest, JsonRpcMessage};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use super::{files, fuzz, texts};
use crate::config::{Config, Flags};
use crate::hint::Interface;
use crate::hooks::{Agent, Reply};
use crate::mcp::stdio;
use crate::plan_file::{self, PlanFile};
use crate::serving::Dashboard;
use crate::tools::{self, Tool, ToolContext, ToolError, raw};
use crate::transcript::repair::{self, RepairContext};
use crate::transcript::{self, Format};
use crate::{proxy, seen_claims, web};

/// Number of inputs after which a database is replaced, so that it stays small.
const INPUTS_PER_DATABASE: usize = 2_000;

const APIS: [Api; 3] = [Api::Anthropic, Api::Chat, Api::Responses];

/// An engine with a plan, in memory.
struct Fixture {
    runtime: Runtime,
    inputs: usize,
    database: Database,
}

struct Database {
    _dir: TestDir,
    context: ToolContext,
    /// The plan, which every database has under the same ids.
    export: Value,
}

impl Fixture {
    /// Counts an input, and replaces a database that has grown.
    fn count_input(&mut self) {
        self.inputs += 1;
        if self.inputs.is_multiple_of(INPUTS_PER_DATABASE) {
            let export = self.database.export.clone();
            self.database = self.runtime.block_on(Database::import(export));
        }
    }

    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("runtime");
        let database = runtime.block_on(Database::create());
        Self {
            runtime,
            inputs: 0,
            database,
        }
    }

    /// Calls a tool; returns the size of the response. A panic in a tool is a panic here.
    fn call(&mut self, tool: &'static Tool, arguments: raw::Arguments) -> usize {
        self.count_input();
        let (context, caller) = (&self.database.context, Caller::local("fuzz"));
        let raw::Arguments { values, issues } = arguments;
        let values = Value::Object(values);
        let result = self.runtime.block_on(async {
            if issues.is_empty() {
                tools::call(context, &caller, tool, values).await
            } else {
                tools::call_with_invalid_fields(context, &caller, tool, values, issues).await
            }
        });
        match result {
            Ok(response) => response.to_string().len(),
            Err(error) => {
                let internal = ToolError::internal(tool.name);
                assert_ne!(error.message, internal.message, "a tool panicked");
                error.to_json(context).to_string().len()
            }
        }
    }
}

impl Database {
    async fn open() -> Self {
        let dir = TestDir::in_memory("fuzz");
        let address = Address::File(dir.join("onward.db"));
        let engine = Engine::open(&address, Settings::default()).await;
        let context = ToolContext {
            interface: Interface::Api,
            engine: engine.expect("database opened"),
            dashboard: Dashboard::Fixed(None),
            extractor: None,
            is_local: true,
            quota: None,
            closing: tokio::sync::watch::channel(false).1,
        };
        Self {
            _dir: dir,
            context,
            export: Value::Null,
        }
    }

    /// A new database with the plan of another one.
    async fn import(export: Value) -> Self {
        let database = Self::open().await;
        let caller = Caller::local("fuzz");
        let imported = database.context.engine.import(&caller, &export);
        imported.await.expect("plan imported");
        Self { export, ..database }
    }

    async fn create() -> Self {
        let database = Self::open().await;
        let caller = Caller::local("fuzz");
        let step =
            |title: &str| json!({ "stepType": "search", "title": title, "instructions": "i" });
        let plan = json!({
            "name": "n",
            "researchQuestion": "q",
            "steps": [step("a"), step("b"), step("c")],
            "branchingConditions": [{
                "afterStepOrder": 1,
                "conditionExpression": "confidence > 0.5",
                "ifTrueAction": "skip_to",
                "actionParams": { "targetStepOrder": 3 },
            }],
        });
        let create = tools::find("create_research_plan").expect("tool");
        let plan = tools::call(&database.context, &caller, create, plan).await;
        let plan = plan.map_err(|error| error.message).expect("plan created");
        let id = plan["planId"].clone();
        let step = plan["firstStep"]["stepId"].clone();
        for (tool, arguments) in [
            ("get_next_step", json!({ "planId": id })),
            (
                "submit_step_result",
                json!({ "stepId": step, "resultSummary": "done", "result": { "found": true } }),
            ),
        ] {
            let tool = tools::find(tool).expect("tool");
            let called = tools::call(&database.context, &caller, tool, arguments).await;
            called.map_err(|error| error.message).expect("accepted");
        }
        let plan = id.as_str().expect("id").parse();
        let engine = &database.context.engine;
        let export = engine.export(&caller, plan.expect("id")).await;
        Self {
            export: export.expect("plan exported"),
            ..database
        }
    }

    /// Arguments that match a schema: the required ones, and all.
    fn arguments(&self, schema: &Map<String, Value>) -> [Value; 2] {
        let all = self.sample("", &Value::Object(schema.clone()));
        let required = schema.get("required").cloned().unwrap_or_default();
        let mut least = all.clone();
        if let Some(fields) = least.as_object_mut() {
            fields.retain(|name, _| {
                let mut required = required.as_array().into_iter().flatten();
                required.any(|field| field == name)
            });
        }
        [least, all]
    }

    fn sample(&self, name: &str, schema: &Value) -> Value {
        match name {
            "planId" => return self.export["plan"]["planId"].clone(),
            "stepId" | "targetStepId" => return self.export["steps"][1]["stepId"].clone(),
            "maxChars" => return json!(20_000),
            "conditionExpression" => return json!("result.found == true"),
            _ => {}
        }
        if let Some(choice) = schema["enum"].get(0) {
            return choice.clone();
        }
        let kind = schema["type"].as_str().or(schema["type"][0].as_str());
        match kind {
            Some("object") => {
                let fields = schema["properties"].as_object().into_iter().flatten();
                let fields = fields.map(|(name, field)| (name.clone(), self.sample(name, field)));
                Value::Object(fields.collect())
            }
            Some("array") => json!([self.sample("", &schema["items"])]),
            Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
            Some("number") => json!(0.5),
            Some("boolean") => json!(true),
            Some(_) | None => json!("words of a text"),
        }
    }
}

#[test]
fn json_rpc_lines() {
    let mut fixture = Fixture::new();
    let request = |method: &str, params: Value| {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        request.to_string().into_bytes()
    };
    let client = json!({ "name": "c", "version": "1" });
    let mut seeds = vec![
        request(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }),
        ),
        request("tools/list", json!({})),
        request("resources/read", json!({ "uri": "onward://plans" })),
        request("prompts/get", json!({ "name": "resume", "arguments": {} })),
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#
            .to_vec(),
        br#"{"jsonrpc":"2.0","id":"a","result":{}}"#.to_vec(),
    ];
    for tool in tools::all() {
        for arguments in fixture.database.arguments(tool.input_schema()) {
            let params = json!({ "name": tool.name, "arguments": arguments });
            seeds.push(request("tools/call", params));
        }
    }
    fuzz(
        "JSON-RPC lines",
        &seeds,
        |input, _| match stdio::parse_line(input) {
            Ok(JsonRpcMessage::Request(request)) => {
                let ClientRequest::CallToolRequest(call) = request.request else {
                    return 0;
                };
                let Some(tool) = tools::find(&call.params.name) else {
                    return 0;
                };
                let values = call.params.arguments.unwrap_or_default();
                let arguments = raw::Arguments {
                    values,
                    issues: Vec::new(),
                };
                fixture.call(tool, arguments)
            }
            Ok(_) => 0,
            Err((error, _)) => error.message.len(),
        },
    );
}

#[test]
fn api_bodies() {
    let mut fixture = Fixture::new();
    let tools = web::route_tools();
    // The name of the tool is the first line.
    let seeds: Vec<Vec<u8>> = tools
        .iter()
        .flat_map(|tool| {
            let arguments = fixture.database.arguments(tool.input_schema());
            arguments.map(|arguments| format!("{}\n{arguments}", tool.name).into_bytes())
        })
        .collect();
    fuzz("API bodies", &seeds, |input, _| {
        let text = String::from_utf8_lossy(input);
        let (name, body) = text.split_once('\n').unwrap_or(("ping", &text));
        let tool = tools.iter().find(|tool| tool.name == name);
        let arguments = match serde_json::from_str(body) {
            Ok(Value::Object(values)) => Some(raw::Arguments {
                values,
                issues: Vec::new(),
            }),
            Ok(_) => None,
            Err(_) => raw::read_object(body),
        };
        match (tool, arguments) {
            (Some(tool), Some(arguments)) => fixture.call(tool, arguments),
            (_, _) => 0,
        }
    });
}

#[test]
fn hook_payloads() {
    let agents = [
        Agent::ClaudeCode,
        Agent::Codex,
        Agent::Gemini,
        Agent::Kimi,
        Agent::Cursor,
        Agent::Opencode,
    ];
    let replies = [
        Reply::Nothing,
        Reply::Context("text".to_owned()),
        Reply::Warning("text".to_owned()),
        Reply::DisableTools,
        Reply::Reject {
            reason: "text".to_owned(),
        },
        Reply::Stop {
            reason: "text".to_owned(),
            to_user: "text".to_owned(),
        },
    ];
    fuzz(
        "hook payloads",
        &files("tests/fixtures/hooks"),
        |input, _| {
            let Ok(payload) = serde_json::from_slice::<Value>(input) else {
                return 0;
            };
            let mut size = 0;
            for agent in agents {
                let Some(event) = agent.parse(&payload) else {
                    continue;
                };
                for reply in &replies {
                    size += agent.render(&event, reply).map_or(0, |text| text.len());
                }
                if let crate::hooks::EventKind::ToolResults { calls, .. } = &event.kind {
                    size += seen_claims::find(calls).len();
                }
            }
            size
        },
    );
}

#[test]
fn conditions() {
    let seeds = texts(&[
        "confidence > 0.5 && result.found == true",
        "result.items.exists(item, item.score >= 3.0 || item.name.startsWith('a'))",
        "size(result.items) > 2 ? step.order < 3 : plan.completed == 1",
        "result.items.filter(i, i.score > 1.0).map(i, i.name).size() == 2",
        "resultSummary.matches('^[a-z]+(x|y)*$') && !has(result.missing)",
        "result['items'][0].name in ['a', \"b\", r'c']",
        "step.type == 'search' && step.attempt <= 2 && -1 + 2 * 3 % 4 == 1",
        "result.items.all(x, result.items.all(y, x.score <= y.score))",
        "[1, 2, 3].exists_one(x, x == 2) && {'a': 1}.a == 1 && 0x1f == 31u",
        "timestamp('2026-01-01T00:00:00Z') < duration('1h') || b'\\x00' == b''",
    ]);
    let result = json!({
        "found": true,
        "items": [{ "name": "a", "score": 1.5 }, { "name": "b", "score": 4 }],
        "nested": { "text": "words ".repeat(100) },
    });
    fuzz("conditions", &seeds, |input, _| {
        let source = String::from_utf8_lossy(input);
        let condition = match Condition::parse_boolean(&source) {
            Ok(condition) => condition,
            Err(invalid) => return invalid.to_string().len(),
        };
        let scope = Scope {
            confidence: Some(0.7),
            result_summary: "found two items",
            result: Some(&result),
            step: StepScope {
                order: 2,
                step_type: "search",
                attempt: 1,
            },
            plan: PlanScope {
                progress: 33,
                completed: 1,
                failed: 0,
                pending: 2,
            },
        };
        match condition.evaluate(&scope) {
            Ok(_) => 1,
            Err(error) => error.to_string().len(),
        }
    });
}

#[test]
fn transcripts() {
    let dir = TestDir::in_memory("fuzz-transcripts");
    let path = dir.join("session");
    let named = Format::value_variants().iter().copied().map(Some);
    let formats: Vec<Option<Format>> = std::iter::once(None).chain(named).collect();
    let context = RepairContext {
        now: Timestamp::from_millis(1_800_000_000_000),
        session_ended: true,
    };
    fuzz(
        "transcripts",
        &files("tests/fixtures/transcript"),
        |input, variants| {
            std::fs::write(&path, input).expect("file written");
            let mut size = 0;
            for format in variants.select(&formats) {
                let read = transcript::read(&path, *format, &mut |item| {
                    size += match item {
                        transcript::ReaderItem::Turn(turn) => turn.id.len() + turn.steps.len(),
                        transcript::ReaderItem::Warning(warning) => warning.len(),
                    };
                    ControlFlow::Continue(())
                });
                size += read.map_or_else(|error| error.to_string().len(), |()| 0);
            }
            for format in variants.select(&formats) {
                if let Ok(examination) = repair::examine(&path, *format, context) {
                    let mut repaired = Vec::new();
                    examination.write(&path, &mut repaired).expect("written");
                    size += repaired.len();
                }
            }
            size
        },
    );
}

#[test]
fn search_queries() {
    let text = "The tides of the sea rise twice a day, because of the moon. ".repeat(40);
    let seeds = texts(&[
        "why two tides a day?",
        "\"exact words\" AND (moon OR sun) NOT -day near/3 title:tide*",
        "Gezeiten änderten über Nacht: 12,5 % — ∑ 潮汐 тест",
        "a'b\"c;d--e/*f*/ %_ \\ $1",
    ]);
    let mut fixture = Fixture::new();
    let tool = tools::find("search_sources").expect("tool");
    fuzz("search queries", &seeds, |input, _| {
        let query = String::from_utf8_lossy(input);
        let parsed = search::Query::parse(&query);
        let mut size = search::snippet(&text, &parsed).len();
        size += search::snippet(&query, &search::Query::parse("words")).len();
        size += search::index_text(&query).len();
        size += search::chunks(&query).len();
        let values = Map::from_iter([("query".to_owned(), json!(query))]);
        let arguments = raw::Arguments {
            values,
            issues: Vec::new(),
        };
        size + fixture.call(tool, arguments)
    });
}

#[test]
fn markdown() {
    let mut seeds = files("../../docs");
    for seed in &mut seeds {
        seed.truncate(4_000);
    }
    seeds.extend(texts(&[
        "| a | b |\n|---|:-:|\n| 1 | 2 |\n\n> - [x] *a* **b** ~~c~~ `d` <script>e</script>\n\n```js\nf\n```\n",
        "[a](javascript:b) ![c](http://d) <http://e> [f][g]\n\n[g]: mailto:h \"i\"\n\n# j\n\n1. k\n   - l\n",
    ]));
    fuzz("Markdown", &seeds, |input, _| {
        web::render_markdown(&String::from_utf8_lossy(input))
    });
}

#[test]
fn configuration() {
    let dir = TestDir::in_memory("fuzz-configuration");
    let path = dir.join("onward.toml");
    let seeds = texts(&[
        &crate::config::reference::example(""),
        "tenant = \"a\"\n[serve]\nbind = \"127.0.0.1:1\"\nallowed_origins = [\"https://a.example\"]\n",
        "[limits]\nbody_bytes = 5\n[retention]\nplans_days = 3\n[notify]\nwebhook = \"https://a.example\"\n",
    ]);
    let command = Flags::augment_args(clap::Command::new("onward"));
    let arguments = ["onward", "--config", path.to_str().expect("path")];
    let matches = command.try_get_matches_from(arguments).expect("arguments");
    let flags = Flags::from_arg_matches(&matches).expect("flags");
    fuzz("configuration", &seeds, |input, _| {
        std::fs::write(&path, input).expect("file written");
        match Config::read(&flags) {
            Ok(config) => config.files.len(),
            Err(failure) => failure.message.len() + failure.hint.len(),
        }
    });
}

#[test]
fn import_files() {
    let fixture = Fixture::new();
    let seeds = [fixture.database.export.to_string().into_bytes()];
    let database = fixture.runtime.block_on(Database::open());
    let (engine, caller) = (&database.context.engine, Caller::local("fuzz"));
    fuzz("import files", &seeds, |input, _| {
        let Ok(document) = serde_json::from_slice::<Value>(input) else {
            return 0;
        };
        fixture.runtime.block_on(async {
            match engine.import(&caller, &document).await {
                // An imported plan is complete: it can be exported again.
                Ok(plan) => {
                    let export = engine.export(&caller, plan).await;
                    let size = export.expect("plan exported").to_string().len();
                    engine.delete_plan(&caller, plan).await.expect("deleted");
                    size
                }
                Err(error) => error.to_string().len(),
            }
        })
    });
}

#[test]
fn upstream_events() {
    let anthropic = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"c\",\"role\":\"assistant\",\"content\":[]}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Bash\",\"input\":{}}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":1}\"}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let chat = "data: {\"id\":\"c\",\"model\":\"g\",\"created\":1,\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"words\",\"tool_calls\":[{\"index\":0,\"id\":\"t\",\"function\":{\"name\":\"Bash\",\"arguments\":\"{}\"}}]}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let responses = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r\",\"model\":\"g\",\"created_at\":1,\"output\":[]}}\n\nevent: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"t\",\"name\":\"Bash\",\"arguments\":\"{}\"}}\n\nevent: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"t\",\"name\":\"Bash\",\"arguments\":\"{}\"}}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[]}}\n\n";
    let body = "{\"id\":\"m\",\"model\":\"c\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Bash\",\"input\":{}}],\"stop_reason\":\"tool_use\"}";
    fuzz(
        "upstream events",
        &texts(&[anthropic, chat, responses, body]),
        |input, variants| {
            let apis = variants.select(&APIS).iter();
            apis.map(|api| proxy::read_response(*api, input)).sum()
        },
    );
}

#[test]
fn proxied_requests() {
    let seeds = texts(&[
        r#"{"model":"m","stream":true,"system":"s","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"out"}]}],"tools":[{"name":"Bash"}]}"#,
        r#"{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"Bash","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t","content":"out"}],"tools":[],"tool_choice":"auto"}"#,
        r#"{"model":"m","instructions":"i","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"function_call","call_id":"t","name":"Bash","arguments":"{}"},{"type":"function_call_output","call_id":"t","output":"out"}],"previous_response_id":"r"}"#,
    ]);
    fuzz("proxied requests", &seeds, |input, variants| {
        let text = String::from_utf8_lossy(input);
        let apis = variants.select(&APIS).iter();
        apis.map(|api| proxy::read_request(*api, &text)).sum()
    });
}

#[test]
fn plan_files() {
    let page = include_str!("../../../../docs/plans.md");
    let example = page.split("````").nth(1).expect("the page has an example");
    let example = example.trim_start_matches("markdown\n");
    let json = r#"{"name":"n","researchQuestion":"q","steps":[{"stepType":"search","instructions":"i","dependsOn":[1]}]}"#;
    fuzz("plan files", &texts(&[example, json]), |input, _| {
        let file = PlanFile::parse(&String::from_utf8_lossy(input));
        match file.map(|file| {
            (
                file.check().is_ok(),
                plan_file::to_markdown(&file.arguments),
            )
        }) {
            // A valid plan survives being written.
            Ok((true, written)) => {
                PlanFile::parse(&written).expect("the written file is valid");
                written.len()
            }
            Ok((false, written)) => written.len(),
            Err(invalid) => invalid.issues.len(),
        }
    });
}
