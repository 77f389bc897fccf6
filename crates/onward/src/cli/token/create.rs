//! `onward token create`: makes a token, and prints it, alone, once.

use std::time::Duration;

use clap::{Args, ValueEnum};
use onward_core::Role as Core;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::words;
use crate::wire::token::Token;

/// Make a token, and print it: it is not shown again
///
/// The token alone goes to standard output, so that `$(onward token create …)` is the token.
#[derive(Args)]
pub(crate) struct Create {
    /// What it is for, so that you know which one to revoke
    #[arg(long, value_name = "NAME")]
    name: String,
    /// What it may do
    #[arg(long, value_name = "ROLE")]
    role: Role,
    /// How long it is valid, such as `12h`, `30d` or `52w`; for ever without it
    #[arg(long, value_name = "SPAN", value_parser = span)]
    expires_in: Option<Duration>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Role {
    /// Everything
    Owner,
    /// Members, tokens and plans
    Admin,
    /// Makes and works on plans and reviews, deletes nothing
    Member,
    /// A program: works on plans, and decides no review
    Agent,
    /// Reads
    Viewer,
}

pub(super) async fn run(args: &Create, cx: &Context) -> Result {
    let Database {
        engine,
        caller,
        now,
    } = Database::open(cx).await?;
    let role = match args.role {
        Role::Owner => Core::Owner,
        Role::Admin => Core::Admin,
        Role::Member => Core::Member,
        Role::Agent => Core::Agent,
        Role::Viewer => Core::Viewer,
    };
    let too_long = || Failure::usage("`--expires-in` is too long", "leave it out: for ever");
    let expires_at = match args.expires_in {
        Some(span) => Some(now.checked_add(span).ok_or_else(too_long)?),
        None => None,
    };
    let (secret, token) = engine
        .create_token(&caller, &args.name, role, expires_at)
        .await?;
    let until = match token.expires_at {
        Some(at) => format!("until {}", words::instant(at)),
        None => "until it is revoked".to_owned(),
    };
    cx.output.say(&format!(
        "a token for `{}` as {}, valid {until}; it is not shown again",
        words::line(&token.name),
        token.role.as_str()
    ));
    if cx.output.json {
        cx.output.print_json(&Token::of(&token, Some(secret)))?;
    } else {
        cx.output.print(&format!("{secret}\n"))?;
    }
    Ok(Exit::Done)
}

/// A number and a unit.
fn span(text: &str) -> std::result::Result<Duration, String> {
    let wrong = || "a span is a number and one of `m`, `h`, `d`, `w`, such as `30d`".to_owned();
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let number = text.get(..text.len() - unit.len_utf8()).unwrap_or_default();
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = number.checked_mul(seconds).filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_a_number_and_a_unit() {
        let days = |days: u64| Ok(Duration::from_secs(days * 24 * 60 * 60));
        assert_eq!(span("30d"), days(30));
        assert_eq!(span("52w"), days(364));
        assert_eq!(span("48h"), days(2));
        assert_eq!(span("1440m"), days(1));
        for wrong in [
            "",
            "d",
            "30",
            "30 d",
            "-1d",
            "0d",
            "1.5d",
            "30日",
            "99999999999999999999w",
            "1y",
        ] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
