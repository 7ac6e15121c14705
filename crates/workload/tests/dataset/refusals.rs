//! Malformed files are refused with the line, the field and the remedy.

use crate::{closed, read, replay};
use precipice_workload::{Dataset, Plan, ReadOptions, Spec};
use proptest::prelude::*;
use std::sync::Arc;

#[test]
fn each_with_its_line_and_field() {
    let trace = r#"{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}"#;
    for (text, parts) in [
        ("", &["the file is empty"][..]),
        ("\n \n", &["the file is empty"]),
        ("{\"prompt\": \"a\"}\n\n{\"prompt\": \"b\"", &["line 3", "not a JSON object: EOF", "at column 14"]),
        ("{\"prompt\": \"a\"}\n[1]", &["line 2", "not a JSON object"]),
        (
            "{\"prompt\": \"a\"}\n{\"promt\": \"b\"}",
            &["line 2, field `prompt`", "missing", "there are: promt"],
        ),
        ("{\"prompt\": \"\"}", &["line 1, field `prompt`", "neither a text nor token ids"]),
        ("{\"prompt\": [1, -2]}", &["line 1, field `prompt`", "`-2`"]),
        ("{\"token_ids\": []}", &["field `token_ids`", "empty prompt"]),
        ("{\"messages\": []}", &["field `messages`", "array of messages"]),
        ("{\"messages\": [{\"content\": \"x\"}]}", &["field `messages`", "message 1 has no `role`"]),
        (
            "{\"messages\": [{\"role\": \"user\"}]}",
            &["field `messages`", "neither a `content` nor a tool call"],
        ),
        ("{\"prompt\": \"a\", \"output_tokens\": 0}", &["field `output_tokens`", "`0`", "1 to"]),
        ("{\"prompt\": \"a\", \"output_tokens\": \"9\"}", &["field `output_tokens`"]),
        ("{\"prompt\": \"a\", \"priority\": 1.5}", &["field `priority`", "`1.5`"]),
        ("{\"prompt\": \"a\", \"timestamp\": -1}", &["field `timestamp`", "`-1`"]),
        ("{\"input_length\": 1e99}", &["field `input_length`"]),
        (
            "{\"prompt\": \"a\", \"timestamp\": 1}\n{\"prompt\": \"b\"}",
            &["line 2", "has no time, but line 1 has one"],
        ),
        ("{\"conversations\": 5}", &["field `conversations`", "not an array"]),
        ("[{\"conversations\": [{\"from\": \"human\"}]}]", &["element 1, field `conversations`"]),
        ("[{\"conversations\": []}]", &["no request in the file", "1 entries"]),
        ("\n[{\"prompt\": \"a\"},\n", &["line 3: malformed JSON: EOF"]),
        ("[{\"input\": 5},\n {\"input\": 0}]", &["element 2, field `input`"]),
        ("[{\"prompt\": \"a\"}] trailing", &["malformed JSON"]),
        ("hello world", &["line 1", "neither JSON nor CSV", "hello world"]),
        ("input,output\n5,x", &["line 2, field `output`", "`x`"]),
        ("5,6\n7", &["line 2, field `output`", "missing"]),
        ("5,6,0\n7,8,-1", &["line 2, field `time`", "`-1`"]),
        ("input,output\n", &["no request in the file"]),
        (
            &format!("{trace}\n{}", trace.replace("600", "6000")),
            &["field `hash_ids`", "--trace-block-tokens"],
        ),
        (&trace.replace("[1, 2]", "[1, \"b\"]"), &["field `hash_ids`", "`\"b\"`"]),
    ] {
        let strict = ReadOptions { strict: true, ..ReadOptions::default() };
        let error =
            Dataset::read(text.as_bytes(), &strict).map(|data| data.len()).expect_err(text).to_string();
        for part in parts {
            assert!(error.contains(part), "{text}: {error} (should say {part})");
        }
    }
}

#[test]
fn a_block_size_that_does_not_fit_is_named() {
    let text = r#"{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}"#;
    let options = ReadOptions { block_tokens: Some(16), ..ReadOptions::default() };
    let error = Dataset::read(text.as_bytes(), &options).unwrap_err().to_string();
    assert_eq!(
        error,
        "line 1, field `hash_ids`: 2 ids for 600 tokens of input: blocks of 16 tokens would be 38; \
         give the right size with --trace-block-tokens"
    );
}

#[test]
fn what_a_plan_cannot_do_with_a_file() {
    let flag = |text: &str, spec: Spec| {
        let data = Some(Arc::new(read(text).unwrap()));
        Plan::new(spec, 0, None, data).expect_err("must be refused").flag
    };
    let (timed, bare) = ("5,6,0\n7,8,1", "{\"prompt\": \"a\"}");
    assert_eq!(flag("5,6", replay(1.0)), "--data");
    assert_eq!(flag(bare, closed()), "--output-tokens");
    assert_eq!(flag(timed, Spec { shuffle: true, ..replay(1.0) }), "--shuffle");
    assert_eq!(flag(timed, replay(0.0)), "--trace-speed");
    assert_eq!(flag(timed, Spec { input_tokens: Some("5".parse().unwrap()), ..closed() }), "--input-tokens");
}

#[test]
fn bytes_that_are_not_text_are_refused_with_their_line() {
    let error = Dataset::read(&b"{\"prompt\": \"a\"}\n\xff\xfe\n"[..], &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("line 2: cannot be read"), "{error}");
}

proptest! {
    #[test]
    fn any_file_is_read_or_refused(
        text in prop_oneof![
            "\\PC{0,80}",
            "[\\[\\]{}\":,0-9a-z\n -]{0,80}",
            "\\{\"(prompt|input|hash_ids|timestamp|messages|conversations)\": ?[\\[{\"0-9a-z]{0,9}[\\]}\"]{0,4}\\}",
        ],
        block in proptest::option::of(0..600_u32),
    ) {
        let options = ReadOptions { block_tokens: block, timestamp_unit_s: None, strict: false };
        if let Ok(data) = Dataset::read(text.as_bytes(), &options) {
            let spec = Spec { output_tokens: Some("4".parse().unwrap()), requests: Some(5), ..closed() };
            let plan = Plan::new(spec, 0, Some("s"), Some(Arc::new(data))).unwrap();
            prop_assert_eq!(plan.requests().count(), 5);
        }
    }
}
