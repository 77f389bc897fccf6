//! `onward tenant set`: changes the settings of a tenant, as the operator.

use clap::Args;

use crate::cli::Context;
use crate::cli::database::{must_exist, open, user};
use crate::exit::Exit;
use crate::failure::Result;
use crate::wire::token::Tenant;

/// Change the settings of a tenant
#[derive(Args)]
pub(crate) struct Set {
    /// Tenant name
    #[arg(value_name = "NAME")]
    name: String,
    /// Whether tokens with the role `agent` may decide reviews
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set)]
    agents_decide_reviews: bool,
}

pub(super) async fn run(args: &Set, cx: &Context) -> Result {
    must_exist(cx)?;
    let engine = open(cx).await?;
    let operator = engine.operator(&args.name, &user()).await?;
    let tenant = engine
        .set_agents_decide_reviews(&operator, args.agents_decide_reviews)
        .await?;
    let decide = if tenant.agents_decide_reviews {
        "agents may decide reviews"
    } else {
        "agents may not decide reviews"
    };
    cx.output
        .note(&format!("tenant `{}`: {decide}", tenant.name));
    if cx.output.json {
        cx.output.print_json(&Tenant::new(&tenant))?;
    }
    Ok(Exit::Done)
}
