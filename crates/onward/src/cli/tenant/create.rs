//! `onward tenant create`: makes a tenant, for whoever runs the server.

use clap::Args;

use crate::cli::Context;
use crate::cli::database::open;
use crate::exit::Exit;
use crate::failure::Result;
use crate::wire::token::Tenant;

/// Make a tenant
#[derive(Args)]
pub(crate) struct Create {
    /// Its name: lower-case letters, digits and hyphens
    #[arg(value_name = "NAME")]
    name: String,
}

pub(super) async fn run(args: &Create, cx: &Context) -> Result {
    let engine = open(cx).await?;
    let tenant = engine.create_tenant(&args.name).await?;
    let name = &tenant.name;
    cx.output.say(&format!(
        "tenant `{name}` is made; `onward --tenant {name} token create` lets somebody in"
    ));
    if cx.output.json {
        cx.output.print_json(&Tenant::of(&tenant))?;
    }
    Ok(Exit::Done)
}
