//! Onward as an MCP server: a thin layer over the SDK, which had three breaking majors in a year.
//!
//! What a tool is stands in `tools`; here it is listed and called, and a refusal becomes a result with
//! `isError`. Beside the tools there are resources, prompts and completion, a file each. Both eras of
//! the protocol are spoken on one connection: 2025-11-25 and before, with `initialize`, and 2026-07-28,
//! whose requests carry everything with them. The transport of `onward mcp` is `mcp/stdio.rs`; HTTP
//! mounts the same [`Server`], with who asks in each request.

pub(crate) mod changes;
mod complete;
#[cfg(feature = "conformance")]
mod conformance;
mod form;
mod prompts;
mod resources;
mod sampling;
pub(crate) mod stdio;

use std::sync::Arc;

use onward_engine::Caller;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    ContentBlock, CustomRequest, CustomResult, ErrorCode, ErrorData, Extensions,
    GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::watch;

use crate::tools::{self, Desk, Refused, Tool, extract_data, request_user_review};

/// The loop, for a model that has never heard of Onward.
const INSTRUCTIONS: &str = "Onward keeps long work moving: plans of steps that survive a lost \
session.\n\
1. `create_research_plan` for work of many steps; `list_active_plans` finds one to go on with.\n\
2. `get_next_step` hands you a step with `instructions` and a `claimToken`.\n\
3. Do it. When it takes long, call `report_step_progress` now and then, or the step counts as \
stalled.\n\
4. `submit_step_result` with that `claimToken`; with `claimNext` its answer holds the next step.\n\
5. Repeat until `status` is `plan_complete`, then write the output.\n\
Where a person must decide: `request_user_review`, tell them, and pass their words on with \
`submit_user_decision`. Where the plan turns out wrong: `modify_plan`. To go on with what another \
session began: `get_research_context`, then `get_next_step` with `includeStalled`. A refusal says in \
`hint` what to call instead.";

/// Which tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offered {
    /// All of them.
    All,
    /// Those that the loop needs.
    Core,
}

impl Offered {
    fn has(self, tool: &Tool) -> bool {
        self == Offered::All || tool.in_core
    }
}

/// Finds out who asks: whoever started the process, or what a request brings along.
pub(crate) type Who = Arc<dyn Fn(&Extensions) -> Option<Caller> + Send + Sync>;

/// What every connection is served with.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) desk: Desk,
    pub(crate) offered: Offered,
    pub(crate) who: Who,
    pub(crate) forms: form::Forms,
    /// Turns true when no more is coming: what waits for somebody stops waiting.
    pub(crate) closing: watch::Receiver<bool>,
}

pub(crate) use form::Forms;

/// Waits until no more is coming.
async fn closed(mut closing: watch::Receiver<bool>) {
    if closing.wait_for(|closing| *closing).await.is_err() {
        // Whoever could have said so is gone, and did not.
        std::future::pending().await
    }
}

/// Work that needs room, in a place of its own. The SDK makes one piece of all that a request could ask
/// for and moves it several times per request, so what is rare and large would be paid for by every
/// call of a tool.
fn apart<T>(work: impl Future<Output = T>) -> std::pin::Pin<Box<impl Future<Output = T>>> {
    Box::pin(work)
}

/// One connection; of 2026-07-28 over HTTP, one request.
pub(crate) struct Server {
    setup: Setup,
    subscribed: changes::Subscribed,
}

impl Server {
    pub(crate) fn new(setup: Setup) -> Self {
        Self {
            setup,
            subscribed: changes::Subscribed::default(),
        }
    }

    fn caller(&self, extensions: &Extensions) -> Result<Caller, ErrorData> {
        (self.setup.who)(extensions)
            .ok_or_else(|| ErrorData::invalid_request("nobody is known to ask", None))
    }

    fn find(&self, name: &str) -> Result<&'static Tool, ErrorData> {
        let tool = tools::find(name).filter(|tool| self.setup.offered.has(tool));
        tool.ok_or_else(|| {
            let name: String = name.chars().take(100).collect();
            ErrorData::invalid_params(format!("unknown tool `{name}`"), None)
        })
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions();
        #[cfg(feature = "conformance")]
        #[allow(deprecated, reason = "the suite asks for it")]
        let capabilities = capabilities.enable_logging();
        let capabilities = capabilities.build();
        let server = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(server.with_title("Onward"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let agreed = self.negotiate_initialize(&request)?;
        // What was agreed holds from here on, and not what was asked for.
        let mut peer = request;
        peer.protocol_version = agreed.protocol_version.clone();
        context.peer.set_peer_info(peer);
        Ok(agreed)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let offered = tools::all().iter();
        let offered = offered.filter(|tool| self.setup.offered.has(tool));
        let offered = offered.map(listed);
        #[cfg(feature = "conformance")]
        let offered = offered.chain(conformance::tools());
        Ok(ListToolsResult::with_all_items(offered.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context.extensions)?;
        #[cfg(feature = "conformance")]
        if let Some(answer) = conformance::call(&self.setup, &request, &context).await {
            return answer;
        }
        let tool = self.find(&request.name)?;
        if tool.name == request_user_review::NAME {
            return Ok(apart(form::call(&self.setup, &caller, tool, request, &context)).await);
        }
        let lent = self.setup.desk.extractor.is_none() && tool.name == extract_data::NAME;
        if lent && sampling::is_offered(&context) {
            return Ok(apart(sampling::call(
                &self.setup,
                &caller,
                tool,
                request,
                &context,
            ))
            .await);
        }
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let answer = tools::call(&self.setup.desk, &caller, tool, arguments).await;
        Ok(result(answer).into())
    }

    /// What the SDK could not read as any request that it knows.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let unknown = || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method.clone(), None);
        if request.method != "tools/call" {
            return Err(unknown());
        }
        // A call whose arguments are no object: the agent is told so as of any other input.
        let params = request.params.as_ref();
        let name = params.and_then(|params| params.get("name")?.as_str());
        let name = name.ok_or_else(|| ErrorData::invalid_params("`name` is missing", None))?;
        let caller = self.caller(&context.extensions)?;
        let tool = self.find(name)?;
        let arguments = params.and_then(|params| params.get("arguments")).cloned();
        let arguments = arguments.unwrap_or_default();
        let answer = tools::call(&self.setup.desk, &caller, tool, arguments).await;
        let told = serde_json::to_value(result(answer)).unwrap_or_default();
        Ok(CustomResult::new(told))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let caller = self.caller(&context.extensions)?;
        let listed = apart(resources::list(&self.setup.desk.engine, &caller)).await?;
        #[cfg(feature = "conformance")]
        let listed = conformance::with_resources(listed);
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = resources::templates();
        #[cfg(feature = "conformance")]
        let templates = conformance::with_template(templates);
        Ok(templates)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context.extensions)?;
        #[cfg(feature = "conformance")]
        if let Some(read) = conformance::read(&request.uri) {
            return Ok(read?.into());
        }
        let read = resources::read(&self.setup.desk.engine, &caller, &request.uri);
        let read = apart(read).await;
        let read = read.map_err(resources::naming(&request.uri))?;
        Ok(read.into())
    }

    #[allow(deprecated, reason = "clients of 2025-11-25 subscribe this way")]
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context.extensions)?;
        #[cfg(feature = "conformance")]
        if conformance::is_watched(&request.uri) {
            return Ok(());
        }
        apart(resources::exists(
            &self.setup.desk.engine,
            &caller,
            &request.uri,
        ))
        .await
        .map_err(resources::naming(&request.uri))?;
        self.subscribed
            .add(&self.setup, caller, request.uri, context.peer);
        Ok(())
    }

    #[allow(deprecated, reason = "clients of 2025-11-25 unsubscribe this way")]
    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribed.remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let uris = requested.resource_subscriptions.iter().flatten();
        let known: Vec<&String> = uris.filter(|uri| resources::is_known(uri)).collect();
        Some(
            SubscriptionFilter::builder()
                .resource_subscriptions(known)
                .build(),
        )
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = self.caller(&context.request_context().extensions)?;
        apart(changes::listen(&self.setup, caller, context)).await;
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let listed = prompts::list();
        #[cfg(feature = "conformance")]
        let listed = conformance::with_prompts(listed);
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let caller = self.caller(&context.extensions)?;
        #[cfg(feature = "conformance")]
        if let Some(answer) = conformance::prompt(&self.setup, &request) {
            return answer;
        }
        let prompt = prompts::get(&self.setup.desk.engine, &caller, &request);
        Ok(apart(prompt).await?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let caller = self.caller(&context.extensions)?;
        let completed = complete::complete(&self.setup.desk.engine, &caller, &request.argument);
        apart(completed).await
    }

    /// The headers of a request are held against it; no tool of ours has any.
    #[cfg(feature = "conformance")]
    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        conformance::tools()
            .into_iter()
            .find(|tool| tool.name == name)
    }

    #[cfg(feature = "conformance")]
    #[allow(deprecated, reason = "the suite asks for it")]
    async fn set_level(
        &self,
        _: rmcp::model::SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}

fn listed(tool: &'static Tool) -> rmcp::model::Tool {
    let hints = rmcp::model::ToolAnnotations::with_title(tool.title)
        .read_only(tool.hints.read_only)
        .destructive(tool.hints.destructive)
        .idempotent(tool.hints.idempotent)
        .open_world(tool.reaches_out);
    rmcp::model::Tool::new(tool.name, tool.description, Arc::clone(tool.input_schema()))
        .with_title(tool.title)
        .with_raw_output_schema(Arc::clone(tool.output_schema()))
        .with_annotations(hints)
}

/// An answer as MCP carries it. A refusal has no structured content: clients hold that against the
/// output schema, and would hide the refusal.
fn result(answer: Result<Value, Refused>) -> CallToolResult {
    match answer {
        Ok(answer) => CallToolResult::structured(answer),
        Err(refused) => {
            let text = refused.to_json().to_string();
            CallToolResult::error(vec![ContentBlock::text(text)])
        }
    }
}

/// A refusal of something that is no tool, as an error of the protocol.
fn error(why: onward_engine::Error) -> ErrorData {
    use onward_engine::Error;
    let refused = Refused::from(why.clone());
    let (message, details) = (refused.message.clone(), Some(refused.to_json()));
    match why {
        Error::PlanNotFound(_) | Error::StepNotFound { .. } | Error::NotFound { .. } => {
            ErrorData::resource_not_found(message, details)
        }
        Error::Refused { .. } | Error::Ambiguous(_) => ErrorData::invalid_params(message, details),
        Error::Conflict { .. } | Error::Unauthorized(_) | Error::Store(_) | _ => {
            ErrorData::internal_error(message, details)
        }
    }
}

#[cfg(test)]
mod tests;
