//! The scheduler against traces of vLLM's own.
#![allow(clippy::unwrap_used, reason = "clippy sees no tests in the functions that the tests share")]

use precipice_engine::trace::{Report, TraceError, Verdict};
use precipice_engine::{VllmVersion, trace};
use std::path::{Path, PathBuf};

fn data(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(directory);
    let mut files: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn verify(bytes: &[u8]) -> Result<Report, TraceError> {
    trace::verify(bytes, None)
}

fn read(file: &Path) -> Report {
    verify(&std::fs::read(file).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// A small trace as text.
fn small() -> String {
    let file = data("vllm-sched-0.27.1").remove(0);
    let mut text = String::new();
    let bytes = std::fs::read(file).unwrap();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text).unwrap();
    text
}

/// Cases of a directory that the engine repeats, each by the rules of the release that it names.
fn identical(directory: &str) -> usize {
    let mut cases = 0;
    for file in data(directory) {
        for case in read(&file).cases {
            assert_eq!(case.verdict, Verdict::Identical, "{case}");
            assert!(case.steps > 0);
            cases += 1;
        }
    }
    cases
}

#[test]
fn every_iteration_of_every_case_is_identical() {
    assert_eq!(identical("vllm-sched-0.27.1"), 114);
    assert_eq!(identical("vllm-sched-0.33.0"), 80);
}

#[test]
fn every_release_is_identical_by_its_own_rules() {
    let counts = VllmVersion::ALL.map(|version| {
        let directory = format!("vllm-sched-releases/{}", version.release());
        for file in data(&directory) {
            for case in read(&file).cases {
                assert_eq!(
                    (case.release.rules, case.release.named.as_deref()),
                    (version, Some(version.release()))
                );
            }
        }
        identical(&directory)
    });
    assert_eq!(counts, [7, 31, 23, 27, 30, 30, 36]);
}

#[test]
fn each_rule_that_changed_tells_the_releases_before_and_after_it_apart() {
    let differing = |traced: VllmVersion, rules: VllmVersion| {
        let files = data(&format!("vllm-sched-releases/{}", traced.release()));
        let differs =
            |file: &&PathBuf| !trace::verify(&std::fs::read(file).unwrap(), Some(rules)).unwrap().identical();
        files.iter().filter(differs).count()
    };
    for (before, after, changed) in [
        (VllmVersion::V0_27, VllmVersion::V0_28, true),
        (VllmVersion::V0_28, VllmVersion::V0_29, false),
        (VllmVersion::V0_29, VllmVersion::V0_30, false),
        (VllmVersion::V0_30, VllmVersion::V0_31, true),
        (VllmVersion::V0_31, VllmVersion::V0_32, false),
        (VllmVersion::V0_32, VllmVersion::V0_33, true),
    ] {
        assert_eq!(differing(before, after) > 0, changed, "{before} by the rules of {after}");
        assert_eq!(differing(after, before) > 0, changed, "{after} by the rules of {before}");
    }
}

#[test]
fn a_feature_that_is_not_known_is_refused_by_name_and_one_that_is_off_is_not() {
    let with = |param: &str| {
        let text = small().replacen("\"params\":{", &format!("\"params\":{{{param},"), 1);
        verify(text.as_bytes()).unwrap()
    };
    for off in ["\"num_speculative_tokens\":0", "\"kv_connector\":null", "\"lora\":false"] {
        assert!(with(off).identical(), "{off}");
    }
    let refused = with("\"num_speculative_tokens\":3");
    assert!(!refused.identical());
    let text = refused.to_string();
    assert!(text.contains("refused: params: `num_speculative_tokens` is 3"), "{text}");
    let asked = small().replacen("\"max_tokens\":132", "\"max_tokens\":132,\"lora\":\"a\"", 1);
    assert!(verify(asked.as_bytes()).unwrap().to_string().contains("`lora`"));
}

#[test]
fn a_trace_without_block_ids_is_held_by_the_rest() {
    let file = data("vllm-sched-golden").remove(0);
    let mut text = String::new();
    let bytes = std::fs::read(file).unwrap();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text).unwrap();
    let mut case: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    for event in case["events"].as_array_mut().unwrap() {
        event.as_object_mut().unwrap().remove("blocks");
    }
    assert!(verify(case.to_string().as_bytes()).unwrap().identical());
    case["events"][4]["free"] = 99.into();
    assert!(!verify(case.to_string().as_bytes()).unwrap().identical());
}

#[test]
fn every_golden_event_is_identical_block_ids_included() {
    let file = data("vllm-sched-golden").remove(0);
    let report = read(&file);
    let (skipped, compared): (Vec<_>, Vec<_>) =
        report.cases.iter().partition(|case| matches!(case.verdict, Verdict::Skipped(_)));
    assert!(report.identical(), "{report}");
    assert_eq!(compared.len(), 44);
    assert_eq!(
        skipped.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "sliding_window_sync: skipped: sliding window is out of scope",
            "sliding_window_async: skipped: sliding window is out of scope"
        ]
    );
}

#[test]
fn plain_text_and_gzip_are_told_apart_by_content() {
    assert!(verify(small().as_bytes()).unwrap().identical());
    assert!(matches!(verify(b"\x1f\x8bnot really"), Err(TraceError::Unreadable(_))));
    assert_eq!(verify(b"\n\n"), Err(TraceError::Empty));
}

#[test]
fn several_cases_may_follow_each_other() {
    let twice = small() + &small();
    assert_eq!(verify(twice.as_bytes()).unwrap().cases.len(), 2);
}

#[test]
fn a_changed_decision_is_the_first_difference_with_both_sides() {
    let mut lines: Vec<_> = small().lines().map(str::to_owned).collect();
    lines[5] = lines[5].replacen("\"free\":", "\"free\":1", 1);
    let report = verify(lines.join("\n").as_bytes()).unwrap();
    assert!(!report.identical());
    let text = report.to_string();
    assert!(text.contains("line 6, iteration 4, `s.free`\n  trace:  111\n  engine: 11"), "{text}");
}

#[test]
fn a_lost_iteration_is_a_difference() {
    let mut lines: Vec<_> = small().lines().map(str::to_owned).collect();
    lines.remove(5);
    let text = verify(lines.join("\n").as_bytes()).unwrap().to_string();
    assert!(text.contains("line 6, iteration 5, `i`\n  trace:  5\n  engine: 4"), "{text}");
}

#[test]
fn what_is_missing_is_named_by_line_and_key() {
    let trace = small();
    for (find, replace, message) in [
        ("\"num_blocks\":54,", "", "line 1: missing field `num_blocks`"),
        ("\"pre\":[],", "", "line 2: missing field `pre`"),
        ("\"max_tokens\":132", "\"max_tokens\":0", "line 2: request 0: max_tokens must be at least 1"),
        ("{\"case\"", "{\"kase\"", "line 1: missing field `case`"),
        ("\"block_size\":16", "\"block_size\":0", "line 1: params: --block-size must be at least 1, not 0"),
    ] {
        assert!(trace.contains(find), "{find}");
        let error = verify(trace.replacen(find, replace, 1).as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let cut: Vec<_> = trace.lines().take(4).collect();
    let error = verify(cut.join("\n").as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "line 4: the trace ends here, without its last line (missing field `end`)");
}
