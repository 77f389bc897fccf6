//! The response of `ping`.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
pub(crate) struct PingResponse {
    message: &'static str,
    server: Server,
    tenant: String,
    user: String,
}

#[derive(Serialize, JsonSchema)]
struct Server {
    name: &'static str,
    version: &'static str,
}

impl PingResponse {
    pub(crate) fn new(caller: &Caller) -> Self {
        Self {
            message: "pong",
            server: Server {
                name: env!("CARGO_PKG_NAME"),
                version: env!("CARGO_PKG_VERSION"),
            },
            tenant: caller.tenant.to_string(),
            user: caller.name.clone(),
        }
    }
}
