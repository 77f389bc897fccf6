//! The session of a call over a stdio connection. Models rarely know a session id, so the engine finds
//! the session of the connection.

use std::sync::Arc;

use onward_engine::Caller;
use serde_json::Value;

use super::{Tool, ToolContext, ToolError, params};

/// The argument with the session's id.
pub(super) const FIELD: &str = "sessionId";

/// The arguments of a call over a connection, with the connection's session if they name none.
pub(super) async fn add(
    context: &ToolContext,
    caller: &Caller,
    tool: &Tool,
    mut arguments: Arc<Value>,
) -> Result<Arc<Value>, ToolError> {
    let properties = tool.input_schema().get("properties");
    let has_session = properties.is_some_and(|all| all.get(FIELD).is_some());
    if caller.connection.is_none() || !has_session {
        return Ok(arguments);
    }
    let reported = arguments.get(FIELD).and_then(Value::as_str);
    let reported = params::session_id(reported.map(str::to_owned));
    let session = context
        .engine
        .session_of(caller, reported, tool.name)
        .await?;
    if let (Some(session), Value::Object(fields)) = (session, Arc::make_mut(&mut arguments)) {
        fields.insert(FIELD.to_owned(), session.as_str().into());
    }
    Ok(arguments)
}
