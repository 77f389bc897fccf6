//! `onward` with the fixtures of the official MCP conformance suite: tools, prompts and resources
//! with the names that the suite calls.
//!
//! `script/conformance` runs the suite against `serve` of this program. Requests pass the same
//! transport, authentication and limits as in the product. [`ConformanceServer`] responds to the
//! suite's names (`fixtures.rs`, `client_requests.rs`, `tasks.rs`) and passes all other requests to the
//! product's handler.

mod client_requests;
mod fixtures;
mod results;
mod tasks;

use std::process::ExitCode;

use onward::McpServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, CustomRequest, CustomResult, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};

fn main() -> ExitCode {
    onward::run_with_handler::<ConformanceServer>()
}

type Context = RequestContext<RoleServer>;

/// The product's handler and the fixtures.
struct ConformanceServer(McpServer);

impl From<McpServer> for ConformanceServer {
    fn from(server: McpServer) -> Self {
        Self(server)
    }
}

impl ServerHandler for ConformanceServer {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.0.get_info();
        #[allow(deprecated, reason = "the conformance suite requires it")]
        {
            info.capabilities.logging = Some(Default::default());
        }
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Result<InitializeResult, ErrorData> {
        let mut agreed = self.0.initialize(request, context).await?;
        agreed.capabilities = self.get_info().capabilities;
        Ok(agreed)
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = self.0.list_tools(page, context).await?;
        list.tools.extend(fixtures::tools());
        list.tools.extend(tasks::tools());
        Ok(list)
    }

    /// The SDK checks request headers against this schema. Only the fixtures declare headers.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        fixtures::tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(response) = tasks::call(&self.0, &request, &context).await {
            return response;
        }
        match fixtures::call(&request, &context).await {
            Some(response) => response,
            None => self.0.call_tool(request, context).await,
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: Context,
    ) -> Result<CustomResult, ErrorData> {
        self.0.on_custom_request(request, context).await
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut list = self.0.list_resources(page, context).await?;
        list.resources.extend(fixtures::resources());
        Ok(list)
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut list = self.0.list_resource_templates(page, context).await?;
        list.resource_templates.push(fixtures::resource_template());
        Ok(list)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match fixtures::read(&request.uri) {
            Some(read) => Ok(read?.into()),
            None => self.0.read_resource(request, context).await,
        }
    }

    #[allow(deprecated, reason = "2025-11-25 clients subscribe this way")]
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        if fixtures::is_subscribable(&request.uri) {
            return Ok(());
        }
        self.0.subscribe(request, context).await
    }

    #[allow(deprecated, reason = "2025-11-25 clients unsubscribe this way")]
    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        self.0.unsubscribe(request, context).await
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.0.accepted_subscription_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.0.listen(context).await
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut list = self.0.list_prompts(page, context).await?;
        list.prompts.extend(fixtures::prompts());
        Ok(list)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        match fixtures::prompt(&request) {
            Some(response) => response,
            None => self.0.get_prompt(request, context).await,
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: Context,
    ) -> Result<CompleteResult, ErrorData> {
        self.0.complete(request, context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: Context,
    ) -> Result<GetTaskResult, ErrorData> {
        match tasks::get(&self.0, &request.task_id, &context).await? {
            Some(status) => Ok(status),
            None => self.0.get_task(request, context).await,
        }
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        let answers = &request.input_responses;
        if tasks::update(&self.0, &request.task_id, answers, &context).await? {
            return Ok(());
        }
        self.0.update_task(request, context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        self.0.cancel_task(request, context).await
    }

    #[allow(deprecated, reason = "the conformance suite requires it")]
    async fn set_level(
        &self,
        _: rmcp::model::SetLevelRequestParams,
        _: Context,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}
