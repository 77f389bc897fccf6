//! Reports whether several versions of Onward use the database.

use onward_engine::{Engine, Error};

use super::Check;

const VERSIONS: &str = "versions";

pub(super) async fn check(engine: &Engine) -> Result<Check, Error> {
    Ok(describe(&engine.versions().await?))
}

fn describe(versions: &[String]) -> Check {
    if versions.len() < 2 {
        return Check::passed(VERSIONS, "no other version of Onward uses the database");
    }
    let message = format!(
        "several versions of Onward use the database: {}",
        versions.join(", ")
    );
    let hint = "restart the agents and servers that run an older version";
    Check::failed(VERSIONS, message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fails_if_several_versions_are_in_use() {
        let versions =
            |texts: &[&str]| texts.iter().copied().map(str::to_owned).collect::<Vec<_>>();
        assert!(describe(&versions(&["0.1.0"])).ok);
        let check = describe(&versions(&["0.1.0", "0.2.0"]));
        assert!(!check.ok && check.message.ends_with("0.1.0, 0.2.0"));
    }
}
