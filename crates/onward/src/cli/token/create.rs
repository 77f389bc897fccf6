//! `onward token create`: creates a token and prints its secret, which is not stored.

use std::time::Duration;

use clap::{Args, ValueEnum};
use onward_core::Role as Core;

use crate::cli::Context;
use crate::cli::database::Database;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::format;
use crate::wire::token::Token;

/// Create a token and print it; it cannot be displayed again
///
/// Standard output contains only the token, for use in scripts: `TOKEN=$(onward token create …)`.
#[derive(Args)]
pub(crate) struct Create {
    /// Name of the token, to identify it in `onward token list`
    #[arg(long, value_name = "NAME")]
    name: String,
    /// Permissions of the token
    #[arg(long, value_name = "ROLE")]
    role: Role,
    /// Lifetime, for example `12h`, `30d` or `52w` [default: no expiry]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    expires_in: Option<Duration>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Role {
    /// All permissions
    Owner,
    /// Manages members, tokens and plans
    Admin,
    /// Creates and changes plans, decides reviews; deletes nothing
    Member,
    /// Works on plans; decides reviews only if the tenant allows it
    Agent,
    /// Reads only
    Viewer,
}

pub(super) async fn run(args: &Create, cx: &Context) -> Result {
    let Database {
        engine,
        caller,
        now,
    } = Database::open_or_create(cx).await?;
    let role = match args.role {
        Role::Owner => Core::Owner,
        Role::Admin => Core::Admin,
        Role::Member => Core::Member,
        Role::Agent => Core::Agent,
        Role::Viewer => Core::Viewer,
    };
    let too_long = || {
        Failure::usage(
            "`--expires-in` is too long",
            "omit it for a token without expiry",
        )
    };
    let expires_at = match args.expires_in {
        Some(lifetime) => Some(now.checked_add(lifetime).ok_or_else(too_long)?),
        None => None,
    };
    let (secret, token) = engine
        .create_token(&caller, &args.name, role, expires_at)
        .await?;
    let until = match token.expires_at {
        Some(at) => format!("until {}", cx.output.date_time(at)),
        None => "until revoked".to_owned(),
    };
    cx.output.note(&format!(
        "token `{}` created with role {}, valid {until}; store it now, it cannot be displayed again",
        format::sanitize_line(&token.name),
        token.role.as_str()
    ));
    if cx.output.json {
        cx.output.print_json(&Token::new(&token, Some(secret)))?;
    } else {
        cx.output.print(&format!("{secret}\n"))?;
    }
    Ok(Exit::Done)
}

/// Parses a number and a unit.
pub(in crate::cli) fn parse_duration(text: &str) -> std::result::Result<Duration, String> {
    let invalid =
        || "expected a number and a unit (`m`, `h`, `d`, `w`), for example `30d`".to_owned();
    let unit = text.chars().next_back().ok_or_else(invalid)?;
    let seconds: u64 = match unit {
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return Err(invalid()),
    };
    let number = text.get(..text.len() - unit.len_utf8()).unwrap_or_default();
    let number: u64 = number.parse().map_err(|_| invalid())?;
    let seconds = number.checked_mul(seconds).filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_number_and_a_unit() {
        let days = |days: u64| Ok(Duration::from_secs(days * 24 * 60 * 60));
        assert_eq!(parse_duration("30d"), days(30));
        assert_eq!(parse_duration("52w"), days(364));
        assert_eq!(parse_duration("48h"), days(2));
        assert_eq!(parse_duration("1440m"), days(1));
        for invalid in [
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
            assert!(parse_duration(invalid).is_err(), "{invalid}");
        }
    }
}
