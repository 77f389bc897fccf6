//! Every byte that is not part of a repair is preserved.

use onward_core::transcript::{Api, TrailingCalls, repair_document};

use crate::harness::assert_document_unchanged;

/// Unsorted keys, unusual number formats, whitespace, unknown fields and blocks.
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
fn preserves_every_byte_around_a_repair() {
    let repaired = repair_document(Api::Anthropic, PRETTY, TrailingCalls::Answer);
    assert_eq!(repaired.repairs.len(), 1);
    let (before, after) = PRETTY.split_once("\"Well?\"").unwrap();
    let content = repaired
        .text
        .strip_prefix(before)
        .expect("the text before the repair is unchanged");
    let content = content
        .strip_suffix(after)
        .expect("the text after the repair is unchanged");
    // The id keeps its original spelling.
    assert!(content.starts_with(r#"[{"type":"tool_result","tool_use_id":"t\u0061","content":"#));
    assert!(content.ends_with(r#""is_error":true},{"type":"text","text":"Well?"}]"#));
}

#[test]
fn a_rewritten_row_keeps_its_other_fields_and_blocks() {
    let row = r#"{"id" : "m1", "content":[{"type":"image","z":1,"a":2},{"type":"tool_result","tool_use_id":"q"}], "role":"user"}"#;
    let document = format!("[{row}]");
    let repaired = repair_document(Api::Anthropic, &document, TrailingCalls::Answer);
    assert!(repaired.text.starts_with(
        r#"[{"id" : "m1", "content":[{"type":"image","z":1,"a":2},{"type":"text","text":"[Result of `q`"#
    ));
    assert!(repaired.text.ends_with(r#"], "role":"user"}]"#));
}

#[test]
fn the_repair_is_deterministic() {
    let first = repair_document(Api::Anthropic, PRETTY, TrailingCalls::Answer);
    assert_eq!(
        first,
        repair_document(Api::Anthropic, PRETTY, TrailingCalls::Answer)
    );
}

#[test]
fn appending_rows_does_not_change_the_repair_of_earlier_rows() {
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{}"}}]}"#;
    let short = format!(r#"[{call},{{"role":"user","content":"1"}}]"#);
    let long =
        format!(r#"[{call},{{"role":"user","content":"1"}},{{"role":"user","content":"2"}}]"#);
    let short = repair_document(Api::Chat, &short, TrailingCalls::Answer);
    let long = repair_document(Api::Chat, &long, TrailingCalls::Answer);
    assert!(long.text.starts_with(short.text.trim_end_matches(']')));
}

#[test]
fn returns_anything_else_unchanged() {
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
            assert_document_unchanged(api, text);
        }
    }
}
