//! The check that every captured request goes through finds what it is there for.

use serde_json::{Value, json};

use crate::support::check_wire;

fn refused(body: Value) -> bool {
    std::panic::catch_unwind(|| check_wire(&body)).is_err()
}

#[test]
fn broken_requests_of_each_format_are_found() {
    let tool_use = |id: &str| json!({"role": "assistant", "content": [{"type": "tool_use", "id": id}]});
    let tool_result =
        |id: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id}]});
    assert!(!refused(json!({"messages": [tool_use("a"), tool_result("a")]})));
    assert!(refused(json!({"messages": [tool_use("a")]})));
    assert!(refused(json!({"messages": [tool_use("a"), tool_result("b")]})));
    assert!(refused(json!({"messages": [tool_result("a")]})));

    let call = json!({"type": "function_call", "call_id": "a"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id});
    assert!(!refused(json!({"input": [call, output("a")]})));
    assert!(refused(json!({"input": [call]})));
    assert!(refused(json!({"input": [output("a"), call]})));

    let calls = json!({"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]});
    let tool = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": ""});
    let user = json!({"role": "user", "content": "x"});
    assert!(!refused(json!({"messages": [calls, tool("a"), tool("b"), user]})));
    assert!(refused(json!({"messages": [calls, tool("b"), tool("a")]})));
    assert!(refused(json!({"messages": [calls, tool("a"), user, tool("b")]})));

    let function = json!({"parts": [{"functionCall": {"name": "a"}}]});
    let response = json!({"parts": [{"functionResponse": {"name": "a"}}]});
    assert!(!refused(json!({"contents": [function, response]})));
    assert!(refused(json!({"contents": [response]})));
    assert!(refused(json!({"contents": [function]})));
}
