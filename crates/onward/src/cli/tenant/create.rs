//! `onward tenant create`: creates a tenant, as the operator.

use clap::Args;

use crate::cli::Context;
use crate::cli::database::open;
use crate::exit::Exit;
use crate::failure::Result;
use crate::wire::token::Tenant;

/// Create a tenant
#[derive(Args)]
pub(crate) struct Create {
    /// Name: lower-case letters, digits and hyphens
    #[arg(value_name = "NAME")]
    name: String,
}

pub(super) async fn run(args: &Create, cx: &Context) -> Result {
    let engine = open(cx).await?;
    let tenant = engine.create_tenant(&args.name).await?;
    let name = &tenant.name;
    cx.output.note(&format!(
        "tenant `{name}` created; create a token with `onward --tenant {name} token create`"
    ));
    if cx.output.json {
        cx.output.print_json(&Tenant::new(&tenant))?;
    }
    Ok(Exit::Done)
}
