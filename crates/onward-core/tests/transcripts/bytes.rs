//! What is not part of a repair comes out byte for byte.

use onward_core::transcript::{Api, Frontier, repair_document};

use crate::desk::stays;

/// Keys out of order, numbers that no writer would write so, blanks, unknown fields and blocks.
const PRETTY: &str = r#"{
  "stream" : true, "temperature":1.00e0,
  "messages": [
    {"content": "Tides?\u002e", "role":"user" , "x":{"b":1,"a":[ ]}},
    {
      "role": "assistant",
      "content": [ {"type":"thinking", "signature":"s==", "thinking":"…"},
                   {"name":"Bash","type":"tool_use","input":{"z":1,"a":1E+2},"id":"t\u0061"} ],
      "y": null
    },
    {"role":"user","content":"Well?"} ,
    {"role":"assistant","content":"Two."}
  ],
  "tools" : [ ]
}
"#;

#[test]
fn everything_around_a_repair_stays_byte_for_byte() {
    let repaired = repair_document(Api::Anthropic, PRETTY, Frontier::Answer);
    assert_eq!(repaired.repairs.len(), 1);
    let (before, after) = PRETTY.split_once("\"Well?\"").unwrap();
    let content = repaired
        .text
        .strip_prefix(before)
        .expect("what comes before is as it was");
    let content = content
        .strip_suffix(after)
        .expect("what comes after is as it was");
    // The id is written as the model wrote it.
    assert!(content.starts_with(r#"[{"type":"tool_result","tool_use_id":"t\u0061","content":"#));
    assert!(content.ends_with(r#""is_error":true},{"type":"text","text":"Well?"}]"#));
}

#[test]
fn a_row_that_is_rewritten_keeps_its_other_fields_and_blocks() {
    let row = r#"{"id" : "m1", "content":[{"type":"image","z":1,"a":2},{"type":"tool_result","tool_use_id":"q"}], "role":"user"}"#;
    let document = format!("[{row}]");
    let repaired = repair_document(Api::Anthropic, &document, Frontier::Answer);
    assert!(repaired.text.starts_with(
        r#"[{"id" : "m1", "content":[{"type":"image","z":1,"a":2},{"type":"text","text":"[Result of `q`"#
    ));
    assert!(repaired.text.ends_with(r#"], "role":"user"}]"#));
}

#[test]
fn the_same_conversation_gives_the_same_bytes() {
    let first = repair_document(Api::Anthropic, PRETTY, Frontier::Answer);
    assert_eq!(
        first,
        repair_document(Api::Anthropic, PRETTY, Frontier::Answer)
    );
}

#[test]
fn what_is_added_to_a_conversation_changes_nothing_before_it() {
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{}"}}]}"#;
    let short = format!(r#"[{call},{{"role":"user","content":"1"}}]"#);
    let long =
        format!(r#"[{call},{{"role":"user","content":"1"}},{{"role":"user","content":"2"}}]"#);
    let short = repair_document(Api::Chat, &short, Frontier::Answer);
    let long = repair_document(Api::Chat, &long, Frontier::Answer);
    assert!(long.text.starts_with(short.text.trim_end_matches(']')));
}

#[test]
fn what_is_no_conversation_comes_back_as_it_is() {
    for text in [
        "",
        "null",
        "{",
        "[",
        "{}",
        "[]",
        "[1,\"a\",null,[],{}]",
        "{\"messages\":7}",
        "not JSON",
        "{\"messages\":[{\"role\":\"user\"}]}",
        "[{\"role\":\"user\",\"content\":{\"new\":1}}]",
        "[{\"role\":7,\"content\":\"a\"}]",
        "[{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":null}]}]",
        "[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":5}]}]",
        "[{\"type\":\"function_call_output\"},{\"type\":\"function_call\"}]",
        "{\"messages\":[],\"messages\":\"x\"}",
        "\u{feff}[]",
    ] {
        for api in [Api::Anthropic, Api::Chat, Api::Responses] {
            stays(api, text);
        }
    }
}
