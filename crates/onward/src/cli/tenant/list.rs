//! `onward tenant list`: all tenants, for the operator.

use clap::Args;
use serde::Serialize;

use crate::cli::Context;
use crate::cli::database::open_existing;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::table::Table;
use crate::wire::token::Tenant;

/// List tenants
#[derive(Args)]
pub(crate) struct List {}

#[derive(Serialize)]
struct Tenants {
    tenants: Vec<Tenant>,
}

pub(super) async fn run(cx: &Context) -> Result {
    let engine = open_existing(cx).await?;
    let tenants = engine.tenants().await?;
    if cx.output.json {
        let tenants = tenants.iter().map(Tenant::new).collect();
        cx.output.print_json(&Tenants { tenants })?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["TENANT", "AGENTS DECIDE REVIEWS", "CREATED"]);
    for tenant in &tenants {
        let decide = if tenant.agents_decide_reviews {
            "yes"
        } else {
            "no"
        };
        let created = cx.output.date_time(tenant.created_at);
        table.row([(&tenant.name).into(), decide.into(), created.into()]);
    }
    cx.output.print(&table.render(cx.output, ""))?;
    Ok(Exit::Done)
}
