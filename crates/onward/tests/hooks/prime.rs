//! The summary of a project at the start of a session and after compaction.

use std::fs;

use onward_testbed::{Run, git};
use serde_json::Value;

use crate::harness::{Harness, compare_golden};
use crate::plan_offers::{create_plan, report_plan};

/// Maximum number of words of a summary.
const MAX_WORDS: usize = 150;

fn context(reply: &Run) -> String {
    let output = reply.json();
    output["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Sends the start of a session with another cause.
fn start(harness: &Harness, cause: &str) -> Run {
    let payload = harness.payload("session_start").replace("startup", cause);
    harness.send_payload(&payload)
}

#[test]
fn prints_the_summary_once_for_one_event_and_again_after_compaction() {
    let harness = Harness::new("prime-once", "claude-code");
    let plan = create_plan(&harness, "Tides");
    report_plan(&harness, &plan);
    assert!(context(&harness.send("session_start")).contains(&plan));
    // The hook of the project runs as well as that of the user.
    harness.send("session_start").assert_empty();
    assert!(context(&start(&harness, "compact")).contains(&plan));
    start(&harness, "compact").assert_empty();
}

#[test]
fn prints_the_advice_only_if_the_skill_is_not_installed() {
    let harness = Harness::new("prime-advice", "claude-code");
    harness.send("session_start").assert_empty();
    let skills = harness.program.dir.join("home/.claude/skills");
    fs::remove_dir_all(&skills).unwrap();
    let advice = context(&start(&harness, "clear"));
    assert_eq!(advice, text_of_command(&harness));
    // The skill of the plugin that runs the hook counts as well.
    let plugin = harness.program.dir.join("plugin");
    fs::create_dir_all(plugin.join("skills/onward-plans")).unwrap();
    fs::write(plugin.join("skills/onward-plans/SKILL.md"), "").unwrap();
    let harness = harness.with_env("CLAUDE_PLUGIN_ROOT", plugin.display());
    start(&harness, "resume").assert_empty();
    fs::remove_dir_all(&plugin).unwrap();
    // So does that of the project.
    let skill = harness.work_dir().join(".claude/skills/onward-plans");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "").unwrap();
    start(&harness, "compact").assert_empty();
}

#[test]
fn subagents_receive_no_summary() {
    let harness = Harness::new("prime-subagent", "claude-code");
    let plan = create_plan(&harness, "Tides");
    report_plan(&harness, &plan);
    let mut payload: Value = serde_json::from_str(&harness.payload("session_start")).unwrap();
    payload["agent_id"] = "agent-1".into();
    harness.send_payload(&payload.to_string()).assert_empty();
    assert!(context(&harness.send("session_start")).contains(&plan));
    // In opencode, a subagent is a session with a parent.
    let folder = harness.work_dir().display();
    let opencode = |extra: &str| {
        let payload = format!(
            "{{\"hook\":\"session.created\",\"sessionID\":\"ses_1\",\"directory\":\"{folder}\"{extra}}}"
        );
        harness.run(&["hook", "opencode"], payload.as_bytes())
    };
    opencode(",\"parentID\":\"ses_0\"").assert_empty();
    assert!(opencode("").stdout.contains(&plan));
}

#[test]
fn offers_a_plan_of_another_agent_in_every_worktree() {
    let harness = Harness::new("prime-worktree", "claude-code");
    let work = harness.work_dir().to_owned();
    fs::create_dir_all(work.join("app")).unwrap();
    fs::write(work.join("app/file"), "text").unwrap();
    git(&work, &["init", "-q"]);
    git(&work, &["add", "."]);
    git(&work, &["commit", "-q", "-m", "first"]);
    git(&work, &["worktree", "add", "-q", "../tree"]);
    let plan = create_plan(&harness, "Tides");
    let payload = harness.payload("plan_created").replace("{plan}", &plan);
    let app = work.join("app").display().to_string();
    let payload = payload.replace(&format!("\"{}\"", work.display()), &format!("\"{app}\""));
    harness.send_payload(&payload).assert_empty();
    let codex = Harness::new("prime-worktree-codex", "codex");
    for folder in [work.join("../tree/app"), work.join("../tree"), work.clone()] {
        let session = format!("session-{}", folder.display());
        let payload = codex.payload("session_start").replace(
            &codex.work_dir().display().to_string(),
            &folder.display().to_string(),
        );
        let mut payload: Value = serde_json::from_str(&payload).unwrap();
        payload["session_id"] = session.into();
        let reply = harness.run(&["hook", "codex"], payload.to_string().as_bytes());
        assert!(context(&reply).contains(&plan), "{}", folder.display());
    }
    // Another repository.
    let other = harness.program.dir.join("other");
    fs::create_dir_all(&other).unwrap();
    git(&other, &["init", "-q"]);
    let payload = harness
        .payload("session_start")
        .replace(&work.display().to_string(), &other.display().to_string());
    harness.send_payload(&payload).assert_empty();
}

/// Claude Code reports that it has created the plan in the directory of this agent.
fn plan_of_another_agent(harness: &Harness, plan: &str) {
    let claude = Harness::new("prime-compact-plan", "claude-code");
    let report = claude
        .payload("plan_created")
        .replace("{plan}", plan)
        .replace(
            &claude.work_dir().display().to_string(),
            &harness.work_dir().display().to_string(),
        );
    harness
        .run(&["hook", "claude-code"], report.as_bytes())
        .assert_empty();
}

#[test]
fn the_check_of_gemini_before_each_request_is_not_a_compaction() {
    let harness = Harness::new("prime-check", "gemini");
    let plan = create_plan(&harness, "Tides");
    let check = |trigger: &str| {
        let mut event: Value = serde_json::from_str(&harness.payload("session_start")).unwrap();
        event["hook_event_name"] = "PreCompress".into();
        event["trigger"] = trigger.into();
        harness.send_payload(&event.to_string()).assert_empty();
        harness.send("prompt").stdout.contains(&plan)
    };
    harness.send("session_start").assert_empty();
    harness.send("prompt").assert_empty();
    plan_of_another_agent(&harness, &plan);
    assert_eq!(
        [check("auto"), check("manual"), check("auto")],
        [false, true, false]
    );
}

#[test]
fn an_agent_whose_compaction_event_has_no_reply_receives_it_with_the_next_prompt() {
    for (agent, event) in [("gemini", "PreCompress"), ("kimi", "PostCompact")] {
        let harness = Harness::new("prime-compact", agent);
        let plan = create_plan(&harness, "Tides");
        harness.send("session_start").assert_empty();
        harness.send("prompt").assert_empty();
        plan_of_another_agent(&harness, &plan);
        let mut compact: Value = serde_json::from_str(&harness.payload("session_start")).unwrap();
        compact["hook_event_name"] = event.into();
        harness.send_payload(&compact.to_string()).assert_empty();
        let reply = harness.send("prompt");
        assert!(reply.stdout.contains(&plan), "{agent}: {reply:?}");
        assert_eq!(reply.code, Some(0));
        harness.send("stop");
        let reply = harness.send("prompt");
        assert!(!reply.stdout.contains(&plan), "{agent}: {reply:?}");
    }
}

/// The output of `onward prime` in the agent's directory.
fn text_of_command(harness: &Harness) -> String {
    let json = harness.run_json(&["prime", "--json"]);
    let text = json["text"].as_str().unwrap();
    assert_eq!(json["words"], text.split_whitespace().count());
    text.to_owned()
}

/// Completes the first step of a plan, and claims another one with a long title.
fn advance_plan(harness: &Harness, plan: &str, title: &str) {
    use onward_core::command::{Modification, ModifyPlan, StepSpec};
    use onward_core::step::StepResult;
    use onward_engine::next_step::NextStep;
    use onward_engine::submit::Submission;
    use onward_engine::{Address, Caller, Engine, engine::Settings};
    let plan = plan.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let address = Address::File(harness.program.dir.join("onward.db"));
        let engine = Engine::open(&address, Settings::default()).await.unwrap();
        let me = Caller::local("agent");
        let spec = StepSpec::new(engine.new_step_id(), onward_core::StepType::Search, "Look.");
        let add = Modification::AddSteps {
            steps: vec![StepSpec {
                title: Some(title[..150].to_owned()),
                ..spec
            }],
            insert_after: None,
        };
        let added = engine.modify_plan(&me, plan, ModifyPlan::new(add));
        added.await.unwrap();
        for submits in [true, false] {
            let next = engine.next_step(&me, plan, None, false).await.unwrap();
            let NextStep::Started(assigned) = next else {
                panic!("{next:?}")
            };
            if submits {
                let result = StepResult::from_summary("Found.".to_owned());
                let submission = Submission {
                    step: assigned.step,
                    result,
                    token: None,
                    session: None,
                    claim_next: false,
                };
                engine.submit(&me, submission).await.unwrap();
            }
        }
        engine.close().await;
    });
}

/// The words that Onward adds to the context of a session, in several states of the project.
#[test]
fn the_summary_has_at_most_150_words() {
    let harness = Harness::new("prime-words", "claude-code");
    let mut golden = "# Words that Onward adds to the context of a session.\n".to_owned();
    let mut record = |state: &str, text: &str| {
        let words = text.split_whitespace().count();
        assert!(words <= MAX_WORDS, "{state}: {words} words");
        golden.push_str(&format!("\n$ {state}: {words} words\n{text}\n"));
    };
    record(
        "nothing to report, skill installed",
        &harness.send("session_start").stdout,
    );
    record(
        "nothing to report, skill not installed",
        &text_of_command(&harness),
    );
    let long = "a b c d e f g h i j k l m n o p q r s t u v w x y z ".repeat(3);
    let plan = create_plan(&harness, &long);
    report_plan(&harness, &plan);
    record("an open plan with a long name", &text_of_command(&harness));
    advance_plan(&harness, &plan, &long);
    record("a completed and a claimed step", &text_of_command(&harness));
    compare_golden("prime", &golden);
}

/// Claims the step of the plan in the name of a session.
pub(crate) fn claim(harness: &Harness, plan: &str, session: &str) {
    use onward_core::id::SessionId;
    use onward_engine::{Address, Caller, Engine, engine::Settings};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let address = Address::File(harness.program.dir.join("onward.db"));
        let engine = Engine::open(&address, Settings::default()).await.unwrap();
        let session = Some(SessionId::new(session));
        let me = Caller::local("agent");
        let next = engine.next_step(&me, plan.parse().unwrap(), session, false);
        next.await.unwrap();
        engine.close().await;
    });
}

#[test]
fn an_agent_that_stops_is_reminded_once_of_the_steps_that_it_holds() {
    for (agent, reason) in [
        ("claude-code", "/reason"),
        ("codex", "/reason"),
        ("gemini", "/reason"),
        ("cursor", "/followup_message"),
        ("opencode", "/context"),
    ] {
        let harness = Harness::new("prime-stop", agent);
        harness.send("prompt");
        let session = harness.session()["sessionId"].as_str().unwrap().to_owned();
        harness.send("stop").assert_empty();
        let plan = create_plan(&harness, "Tides");
        claim(&harness, &plan, &session);
        harness.send("prompt");
        let active = harness
            .payload("stop")
            .replace("\"stop_hook_active\": false", "\"stop_hook_active\": true");
        if active.contains("\"stop_hook_active\": true") {
            harness.send_payload(&active).assert_empty();
        }
        let reply = harness.send("stop").json();
        let text = reply.pointer(reason).and_then(Value::as_str).unwrap();
        assert!(text.contains(&plan), "{agent}: {reply}");
        harness.send("stop").assert_empty();
        harness.send("prompt");
        harness.send("stop").assert_empty();
    }
}
