//! Each kind of file, told by its content.

use crate::{closed, plan, read, replay, requests};
use flate2::read::GzDecoder;
use precipice_workload::{Arrival, Dataset, Lengths, Plan, PlannedRequest, Prompt, ReadOptions, Spec};
use std::collections::HashMap;
use std::io::BufReader;
use std::sync::Arc;

const PROMPTS: &str = r#"
{"prompt": "Say hello.", "output_tokens": 5}

{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Hi"}]}], "max_tokens": 7, "priority": -2}
{"prompt_token_ids": [11, 12, 13, 14], "output_length": 9}
"#;

fn ids(request: &PlannedRequest) -> Vec<u32> {
    request.prompt.token_ids(0..u32::MAX).unwrap()
}

fn times(requests: &[PlannedRequest]) -> Vec<u64> {
    let at = |request: &PlannedRequest| match request.arrival {
        Arrival::At(at) => at,
        Arrival::WhenFree => panic!("no time"),
    };
    requests.iter().map(at).collect()
}

#[test]
fn prompts_as_they_are_written() {
    let got = requests(PROMPTS, closed(), None);
    let messages = serde_json::json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Hi"}]}]);
    let Prompt::Chat(chat) = &got[1].prompt else { panic!("a chat") };
    assert_eq!(got[0].prompt, Prompt::Text("Say hello.".into()));
    assert_eq!(serde_json::Value::from(chat.messages.clone()), messages);
    assert_eq!(got[2].prompt, Prompt::Ids([11, 12, 13, 14].into()));
    assert_eq!(got.iter().map(|r| r.output_tokens).collect::<Vec<_>>(), [5, 7, 9]);
    assert_eq!(got.iter().map(|r| r.priority).collect::<Vec<_>>(), [0, -2, 0]);
    let facts = plan(PROMPTS, closed(), None).facts();
    assert_eq!((facts.counted, facts.input_tokens, facts.planned_prefix_share), (3, None, None));
}

#[test]
fn a_salt_marks_texts_alike_within_a_run_and_differently_across_runs() {
    let text = |salt| {
        let got = requests(PROMPTS, Spec { requests: Some(6), ..closed() }, Some(salt));
        got.into_iter().map(|request| request.prompt).collect::<Vec<_>>()
    };
    let mark = |prompt: &Prompt| match prompt {
        Prompt::Text(text) => text.split_once(' ').unwrap().0.to_owned(),
        Prompt::Chat(chat) => {
            chat.messages[0]["content"].as_str().unwrap().split_once(' ').unwrap().0.to_owned()
        }
        _ => panic!("a text"),
    };
    let (a, b) = (text("a"), text("b"));
    assert_eq!(mark(&a[0]), mark(&a[1]));
    assert_ne!(mark(&a[0]), mark(&b[0]));
    // The second pass through the file is not warmed by the first.
    assert_ne!(mark(&a[0]), mark(&a[3]));
    let (Prompt::Ids(one), Prompt::Ids(other)) = (&a[2], &b[2]) else { panic!("ids") };
    assert!(one.ends_with(&[11, 12, 13, 14]) && one.len() == 12 && one != other);
    assert!(one.iter().all(|id| (11..=14).contains(id)));
}

#[test]
fn share_gpt_asks_the_first_question() {
    let json = r#"[
      {"id": "a", "conversations": [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "Because of it all."}]},
      {"id": "b", "conversations": [{"from": "gpt", "value": "I begin."}, {"from": "human", "value": "Well"}]},
      {"id": "c", "conversations": []},
      {"id": "d", "conversations": [{"from": "system", "value": "S"}, {"from": "human", "value": "And?"}, {"from": "gpt", "value": "So."}]}
    ]"#;
    let data = read(json).unwrap();
    assert_eq!((data.len(), data.skipped()), (2, 2));
    let got = requests(json, closed(), None);
    assert_eq!(got[0].prompt, Prompt::Text("Why?".into()));
    assert_eq!(got[1].prompt, Prompt::Text("And?".into()));
    // 18 bytes of answer at four bytes a token.
    assert_eq!(got[0].output_tokens, 5);
    let forced = Spec { output_tokens: Some(Lengths::Fixed(64)), ..closed() };
    assert!(requests(json, forced, None).iter().all(|request| request.output_tokens == 64));
}

const MOONCAKE: &str = r#"{"timestamp": 5000, "input_length": 1200, "output_length": 52, "hash_ids": [46, 47, 48]}
{"timestamp": 3000, "input_length": 1024, "output_length": 10, "hash_ids": [46, 47]}
{"timestamp": 7500, "input_length": 1500, "output_length": 20, "hash_ids": [46, 99, 48]}
"#;

#[test]
fn a_timed_trace_keeps_its_times_and_what_it_shares() {
    let data = read(MOONCAKE).unwrap();
    assert!(data.has_times());
    assert_eq!(data.block_tokens(), Some(512));
    let got = requests(MOONCAKE, replay(1.0), Some("s"));
    // In order of time, milliseconds since the first.
    assert_eq!(times(&got), [0, 2_000_000_000, 4_500_000_000]);
    assert_eq!(got.iter().map(|r| r.output_tokens).collect::<Vec<_>>(), [10, 52, 20]);
    let ids: Vec<Vec<u32>> = got.iter().map(ids).collect();
    assert_eq!(ids.iter().map(Vec::len).collect::<Vec<_>>(), [1024, 1200, 1500]);
    assert_eq!(ids[0], ids[1][..1024]);
    assert_eq!(ids[1][..512], ids[2][..512]);
    assert_ne!(ids[1][512..1024], ids[2][512..1024]);
    // Equal ids are equal content, a partial block being the beginning of the whole one.
    assert_eq!(ids[1][1024..], ids[2][1024..1200]);
    // Prefix hits: 1024 of the second, 512 of the third.
    assert_eq!(plan(MOONCAKE, replay(1.0), None).facts().planned_prefix_share, Some(1536.0 / 3724.0));
    assert_eq!(times(&requests(MOONCAKE, replay(2.0), None)), [0, 1_000_000_000, 2_250_000_000]);
    // Another run shares nothing with this one; another pass neither.
    let salted = requests(MOONCAKE, replay(1.0), Some("t"));
    assert_ne!(ids[0][..16], crate::formats::ids(&salted[0])[..16]);
    let twice = requests(MOONCAKE, Spec { requests: Some(6), ..closed() }, Some("s"));
    assert_ne!(crate::formats::ids(&twice[0])[..16], crate::formats::ids(&twice[3])[..16]);
    // A trace is never repeated, and a duration cuts it.
    assert_eq!(requests(MOONCAKE, Spec { requests: Some(9), ..replay(1.0) }, None).len(), 3);
    assert_eq!(
        requests(MOONCAKE, Spec { duration: Some("3s".parse().unwrap()), ..replay(1.0) }, None).len(),
        2
    );
}

#[test]
fn the_unit_of_time_and_the_size_of_a_block_can_be_given() {
    let vllm = r#"{"timestamp": 1.5, "input_length": 40, "output_length": 4, "hash_ids": [1, 2, 3]}
{"timestamp": 2.25, "input_length": 33, "output_length": 4, "hash_ids": [1, 2]}"#;
    assert_eq!(read(vllm).unwrap().block_tokens(), Some(16));
    let options = ReadOptions { block_tokens: Some(16), timestamp_unit_s: Some(1.0), strict: false };
    let data = Dataset::read(vllm.as_bytes(), &options).unwrap();
    let plan = Plan::new(replay(1.0), 0, None, Some(Arc::new(data))).unwrap();
    let got: Vec<_> = plan.requests().collect();
    assert_eq!(times(&got), [0, 750_000_000]);
    // The token after the last block of the second is its own.
    assert_eq!(ids(&got[0])[..32], ids(&got[1])[..32]);
    assert_ne!(ids(&got[0])[32], ids(&got[1])[32]);
}

/// Totals and the shared part were computed from the file by other means.
#[test]
fn the_llmservingsim_workload() {
    let file = include_bytes!("../data/llmservingsim-rtx4090/workload.jsonl.gz");
    let reader = BufReader::new(GzDecoder::new(&file[..]));
    let data = Dataset::read(reader, &ReadOptions::default()).unwrap();
    assert_eq!((data.len(), data.block_tokens()), (300, Some(16)));
    let plan = Plan::new(replay(1.0), 0, Some("s"), Some(Arc::new(data))).unwrap();
    let facts = plan.facts();
    assert_eq!(facts.last_arrival_ns, Some(29_136_836_395));
    assert_eq!(facts.input_tokens.unwrap().mean, 257_239.0 / 300.0);
    assert_eq!(facts.output_tokens.unwrap().mean, 195_753.0 / 300.0);
    assert_eq!(facts.planned_prefix_share, Some(19_520.0 / 257_239.0));
    // The 18th request is the first whose blocks come again: equal blocks, equal tokens.
    let mut first_blocks: HashMap<Vec<u32>, u32> = HashMap::new();
    for request in plan.requests() {
        *first_blocks.entry(ids(&request)[..16].to_vec()).or_default() += 1;
    }
    assert!(first_blocks.values().any(|count| *count > 1));
}

#[test]
fn lengths_come_as_json_or_csv() {
    let expected: Vec<_> = [(100, 20), (200, 30)].into();
    for text in [
        "100,20\n200,30\n",
        "input,output\n100,20\n200,30",
        "\u{feff}Input Tokens, Output Tokens\r\n100, 20\r\n200, 30\r\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,100,20\n2023-11-16 18:17:04.03,200,30\n",
        "{\"input_tokens\":100,\"output_tokens\":20}\n{\"input_tokens\":200,\"output_tokens\":30}",
        "[{\"input\":100,\"output\":20},{\"input\":200,\"output\":30}]",
    ] {
        let got = requests(text, closed(), None);
        let lengths = |r: &PlannedRequest| (r.prompt.tokens().unwrap(), r.output_tokens);
        assert_eq!(got.iter().map(lengths).collect::<Vec<_>>(), expected, "{text}");
        assert_ne!(ids(&got[0])[..16], ids(&got[1])[..16]);
    }
    let burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,472,18,490,API log\n45.5,GPT-4,1087,230,1317,API log\n";
    assert_eq!(times(&requests(burst, replay(1.0), None)), [0, 40_500_000_000]);
}

#[test]
fn a_file_repeats_in_order_or_shuffled_anew() {
    let text = (1..=50).map(|n| format!("{n},{n}")).collect::<Vec<_>>().join("\n");
    let order = |shuffle| -> Vec<u32> {
        let spec = Spec { requests: Some(100), shuffle, ..closed() };
        requests(&text, spec, None).iter().map(|request| request.output_tokens).collect()
    };
    let plain = order(false);
    assert!(plain[..50].is_sorted() && plain[50..].is_sorted());
    let shuffled = order(true);
    assert_ne!(shuffled[..50], shuffled[50..]);
    for pass in [&shuffled[..50], &shuffled[50..]] {
        let mut sorted = pass.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, plain[..50]);
    }
    assert_eq!(shuffled, order(true));
}

#[test]
fn warm_ups_of_a_file_have_its_lengths_and_other_prompts() {
    let plan = plan(MOONCAKE, Spec { warmup: 30, ..replay(1.0) }, None);
    let lengths: Vec<u32> = plan.warmup().map(|request| request.prompt.tokens().unwrap()).collect();
    assert_eq!(lengths.len(), 30);
    assert!([1024, 1200, 1500].iter().all(|length| lengths.contains(length)));
    assert!(plan.warmup().all(|warm| plan.requests().all(|hot| ids(&warm)[..16] != ids(&hot)[..16])));
}

/// Made after public agent traces.
const AGENT: &str = r#"{"messages": [{"role": "user", "content": "weather in Paris?"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "w", "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "c1", "name": "w", "content": "22C"}], "tools": [{"type": "function", "function": {"name": "w"}}], "output_tokens": 8}"#;

#[test]
fn tool_calls_tools_names_and_null_contents_stand() {
    let got = requests(AGENT, closed(), None);
    let Prompt::Chat(chat) = &got[0].prompt else { panic!("a chat") };
    let file: serde_json::Value = serde_json::from_str(AGENT).unwrap();
    assert_eq!(serde_json::Value::from(chat.messages.clone()), file["messages"]);
    assert_eq!(chat.fields["tools"], file["tools"]);
    let salted = requests(AGENT, closed(), Some("a"));
    let Prompt::Chat(chat) = &salted[0].prompt else { panic!("a chat") };
    assert!(chat.messages[0]["content"].as_str().unwrap().ends_with(" weather in Paris?"));
    assert_eq!(chat.messages[1..], file["messages"].as_array().unwrap()[1..]);
}

#[test]
fn a_bad_row_is_passed_over_counted_and_said() {
    let conversation =
        r#"{"conversations": [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}]}"#;
    let null = conversation.replace("\"hello\"", "null");
    for text in [
        "input,output\n100,10\n107,0\n109,10\n".to_owned(),
        format!("{conversation}\n{null}\n{conversation}"),
        format!("[{conversation},{null},{conversation}]"),
    ] {
        let data = read(&text).unwrap();
        assert_eq!((data.len(), data.skipped()), (2, 1), "{text}");
        let said = data.remarks().join("\n");
        assert!(said.contains("1 of 3 rows") && said.contains("--strict"), "{said}");
    }
}

#[test]
fn seconds_and_milliseconds_are_told_apart_and_said() {
    let lines = |times: [&str; 3]| {
        times
            .map(|time| format!("{{\"timestamp\": {time}, \"input_length\": 5, \"output_length\": 2}}"))
            .join("\n")
    };
    for (text, unit) in [
        (lines(["61.114", "62.614", "64.114"]), "seconds"),
        (lines(["61114", "62614", "64114"]), "milliseconds"),
    ] {
        let data = read(&text).unwrap();
        assert_eq!(data.remarks(), [format!("3 requests over 3.0 s, timestamps in {unit}")]);
        assert_eq!(times(&requests(&text, replay(1.0), None)), [0, 1_500_000_000, 3_000_000_000]);
    }
}

#[test]
fn calendar_dates_are_times_and_counts_of_a_data_frame_are_whole() {
    let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5000000,374.0,44.0\n\
        2023-11-16 18:15:50.7500000,396.0,109.0\n";
    assert_eq!(times(&requests(azure, replay(1.0), None)), [0, 4_250_000_000]);
}
