//! Finds the claims in the results of an agent's tool calls, as hooks and the proxy see them: the
//! responses of `get_next_step` and of `submit_step_result` with `claimNext`.

use onward_core::id::ClaimToken;
use onward_core::policy::MAX_CLAIM_TOKEN;
use onward_engine::SeenClaim;
use onward_engine::session::ObservedCall;
use serde_json::Value;

/// The tools that claim steps. Agents prefix the names of MCP tools.
const CLAIMING_TOOLS: [&str; 2] = ["get_next_step", "submit_step_result"];

/// The claims in the results of these calls.
pub(crate) fn find(calls: &[ObservedCall]) -> Vec<SeenClaim> {
    let claiming = calls.iter().filter(|call| {
        let matches = |tool: &&str| call.tool.ends_with(*tool);
        CLAIMING_TOOLS.iter().any(matches)
    });
    claiming.filter_map(|call| claim_in(&call.output)).collect()
}

/// The claim in a response. Some agents escape the JSON, or append more text.
fn claim_in(output: &str) -> Option<SeenClaim> {
    let mut values = serde_json::Deserializer::from_str(output).into_iter::<Value>();
    let response = match values.next() {
        Some(Ok(response)) => response,
        Some(Err(_)) | None => {
            let text: String = serde_json::from_str(&format!("\"{output}\"")).ok()?;
            serde_json::from_str(&text).ok()?
        }
    };
    let assigned = response.get("nextStep").unwrap_or(&response);
    let text = |field: &str| assigned.get(field).and_then(Value::as_str);
    let token = text("claimToken").filter(|token| token.len() <= MAX_CLAIM_TOKEN)?;
    Some(SeenClaim {
        step: text("stepId")?.parse().ok()?,
        token: ClaimToken::new(token),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_claims_in_responses_of_onwards_tools_only() {
        let step = "0197f1a0-0000-7000-8000-000000000001";
        let claim = json!({ "stepId": step, "claimToken": "t", "instructions": "claimToken" });
        let submitted = json!({ "stepId": "another", "nextStep": claim });
        let (plain, nested) = (claim.to_string(), submitted.to_string());
        let escaped = plain.replace('\\', "\\\\").replace('"', "\\\"");
        for (tool, output, is_found) in [
            ("mcp__onward__get_next_step", plain.clone(), true),
            ("onward_get_next_step", escaped, true),
            ("get_next_step", format!("{plain}\nand more"), true),
            ("mcp__onward__submit_step_result", nested, true),
            ("Bash", plain, false),
            ("get_next_step", "{}".to_owned(), false),
            ("get_next_step", "claimToken".to_owned(), false),
        ] {
            let call = ObservedCall {
                id: None,
                tool: tool.to_owned(),
                input: json!({}),
                ok: None,
                output: output.clone(),
            };
            let found = find(&[call]);
            let steps: Vec<String> = found.iter().map(|claim| claim.step.to_string()).collect();
            let expected: &[&str] = if is_found { &[step] } else { &[] };
            assert_eq!(steps, expected, "{tool}: {output}");
        }
    }
}
